/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes in one walk over the steps. What comes before a step is known by a clock: a number a lane, as a lane runs its
 * steps in their order. */
#include "compile/plan_streams.h"

#include <string.h>

#include "base/checked.h"

#define STREAMS_LANES_MAX 64u
#define STREAMS_NONE UINT32_MAX

typedef struct streams_lane {
    uint32_t tail; /* its last step; STREAMS_NONE: none yet */
    uint64_t ready;
} streams_lane;

typedef struct streams_work {
    rondo__streams *streams;
    rondo__streams_step *steps;
    const uint32_t *needs;
    uint32_t *pending; /* a step: how many of those that need it have no lane yet */
    uint64_t *ends;    /* a step: when it is done */
    uint64_t wait_cost;
    uint32_t lanes_max;
    streams_lane lanes[STREAMS_LANES_MAX];
    /* Of the step that is looked at, a lane each. */
    uint32_t need[STREAMS_LANES_MAX];  /* the last step + 1 that it needs itself; 0: none */
    uint32_t known[STREAMS_LANES_MAX]; /* the last step + 1 that comes before it by all its needs */
} streams_work;

void rondo__streams_init(rondo__streams *streams, const rondo_allocator *allocator) {
    memset(streams, 0, sizeof *streams);
    rondo__buffer_init(&streams->waits, allocator, sizeof(uint32_t), UINT32_MAX);
    rondo__buffer_init(&streams->clocks, allocator, sizeof(uint32_t), SIZE_MAX / 16u);
}

void rondo__streams_deinit(rondo__streams *streams) {
    rondo__buffer_deinit(&streams->clocks);
    rondo__buffer_deinit(&streams->waits);
}

static uint32_t *streams_clock(const streams_work *p, uint32_t step) {
    return RONDO__BUFFER_AT(&p->streams->clocks, uint32_t, (size_t)step * p->streams->stride);
}

/* Whether the last need in a lane comes before some other need anyway. */
static bool streams_implied(const streams_work *p, uint32_t lane) {
    for (uint32_t l = 0; l < p->streams->lanes; l++) {
        if (l != lane && p->need[l] && streams_clock(p, p->need[l] - 1u)[lane] >= p->need[lane]) return true;
    }
    return false;
}

static void streams_look(streams_work *p, const rondo__streams_step *step) {
    memset(p->need, 0, sizeof p->need);
    memset(p->known, 0, sizeof p->known);
    for (uint32_t i = 0; i < step->need_count; i++) {
        uint32_t need = p->needs[step->first_need + i], lane = p->steps[need].lane;
        if (need + 1u > p->need[lane]) p->need[lane] = need + 1u;
        p->pending[need]--;
    }
    for (uint32_t l = 0; l < p->streams->lanes; l++) {
        if (!p->need[l]) continue;
        const uint32_t *clock = streams_clock(p, p->need[l] - 1u);
        for (uint32_t k = 0; k < p->streams->lanes; k++) {
            if (clock[k] > p->known[k]) p->known[k] = clock[k];
        }
    }
}

/* How well a lane suits, the smaller the better. */
static uint32_t streams_rank(const streams_work *p, uint32_t lane) {
    uint32_t tail = p->lanes[lane].tail;
    if (p->need[lane] == tail + 1u && !streams_implied(p, lane)) return 0; /* it goes on there without a wait */
    if (p->known[lane] <= tail) return 4;                                  /* it would wait for what it does not need */
    return p->pending[tail] == 0 ? 1 : 3; /* idle; another one may want to go on there */
}

static uint32_t streams_choose(const streams_work *p, uint32_t step) {
    uint32_t best = STREAMS_NONE, best_rank = p->streams->lanes < p->lanes_max ? 2 : STREAMS_NONE;
    for (uint32_t l = 0; l < p->streams->lanes; l++) {
        uint32_t rank = streams_rank(p, l);
        bool better = rank < best_rank;
        /* What nobody needs ends the run, and lane 0 has to come after it. */
        if (rank == 0 && best == 0 && p->pending[step] == 0) break;
        /* Of equals: what it needs and is done last, as then it waits for nothing; else the lane that is free first. */
        if (rank == best_rank && best != STREAMS_NONE) {
            uint64_t ready = p->lanes[l].ready, least = p->lanes[best].ready;
            better = rank == 0 ? ready > least : ready < least;
        }
        if (better) best = l, best_rank = rank;
    }
    return best != STREAMS_NONE ? best : p->streams->lanes;
}

static rondo_status streams_place(streams_work *p, uint32_t s, uint32_t lane) {
    rondo__streams *streams = p->streams;
    rondo__streams_step *step = &p->steps[s];
    if (lane == streams->lanes) p->lanes[streams->lanes++] = (streams_lane){STREAMS_NONE, 0};
    streams_lane *own = &p->lanes[lane];
    uint32_t *clock = streams_clock(p, s);
    uint64_t begin = own->ready;
    if (own->tail != STREAMS_NONE) memcpy(clock, streams_clock(p, own->tail), streams->stride * sizeof *clock);
    else if (lane > 0) begin = p->wait_cost; /* for the stream that began it all */
    step->lane = lane;
    step->first_wait = (uint32_t)streams->waits.count;
    for (uint32_t l = 0; l < streams->lanes; l++) {
        if (l == lane || p->need[l] <= clock[l] || streams_implied(p, l)) continue;
        uint32_t other = p->need[l] - 1u;
        RONDO__TRY(rondo__buffer_append(&streams->waits, &other, 1));
        p->steps[other].awaited = true;
        if (p->ends[other] + p->wait_cost > begin) begin = p->ends[other] + p->wait_cost;
    }
    step->wait_count = (uint32_t)streams->waits.count - step->first_wait;
    for (uint32_t l = 0; l < streams->lanes; l++) {
        if (p->known[l] > clock[l]) clock[l] = p->known[l];
    }
    clock[lane] = s + 1u;
    p->ends[s] = own->ready = begin + step->cost;
    own->tail = s;
    streams->serial += step->cost;
    if (p->ends[s] > streams->parallel) streams->parallel = p->ends[s];
    return RONDO_OK;
}

static rondo_status streams_all(streams_work *p, uint32_t count) {
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t i = 0; i < p->steps[s].need_count; i++) p->pending[p->needs[p->steps[s].first_need + i]]++;
        p->steps[s].awaited = false;
    }
    for (uint32_t s = 0; s < count; s++) {
        streams_look(p, &p->steps[s]);
        RONDO__TRY(streams_place(p, s, streams_choose(p, s)));
    }
    if (p->streams->lanes > 1) p->streams->parallel += p->wait_cost; /* the caller's stream waits for all */
    return RONDO_OK;
}

rondo_status rondo__plan_streams(rondo__streams *streams, rondo__streams_step *steps, uint32_t count,
                                 const uint32_t *needs, uint32_t lanes_max, uint64_t wait_cost) {
    const rondo_allocator *allocator = &streams->waits.allocator;
    streams_work p = {.streams = streams, .steps = steps, .needs = needs, .wait_cost = wait_cost};
    void *pending = NULL, *ends = NULL;
    p.lanes_max = lanes_max < 1u ? 1u : lanes_max < STREAMS_LANES_MAX ? lanes_max : STREAMS_LANES_MAX;
    streams->waits.count = streams->clocks.count = 0;
    streams->lanes = 0;
    streams->stride = p.lanes_max;
    streams->serial = streams->parallel = 0;
    RONDO__TRY(rondo__buffer_append(&streams->clocks, NULL, (size_t)count * streams->stride));
    rondo_status status = rondo__allocate_zeroed(allocator, count * sizeof(uint32_t), &pending);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint64_t), &ends);
    p.pending = pending;
    p.ends = ends;
    if (!status) status = streams_all(&p, count);
    rondo__free(allocator, ends, count * sizeof(uint64_t));
    rondo__free(allocator, pending, count * sizeof(uint32_t));
    return status;
}
