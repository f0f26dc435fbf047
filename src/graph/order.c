/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks, points and steps of a capture with several lanes. */
#include "graph/order.h"

#include <string.h>

#include "base/checked.h"
#include "base/status.h"

#define ORDER_MAX ((size_t)1 << 30)

typedef struct order_point {
    uint64_t before, sequence;
    size_t clock, leaves;
    uint32_t leaf_count, clock_count;
    uint32_t waits; /* that are steps */
    uint32_t event;
    uint16_t lane;
} order_point;

static rondo__order_lane *order_lane(const rondo__order *order, uint32_t lane) {
    return RONDO__BUFFER_AT(&order->lanes, rondo__order_lane, lane);
}

static order_point *order_point_at(const rondo__order *order, uint32_t point) {
    return RONDO__BUFFER_AT(&order->points, order_point, point);
}

static uint64_t order_clock(const rondo__order_lane *lane, uint32_t other) {
    return other < lane->clock.count ? *RONDO__BUFFER_AT(&lane->clock, const uint64_t, other) : 0;
}

uint32_t rondo__order_lane_of(const rondo__order *order, uint64_t node) {
    return order ? *RONDO__BUFFER_AT(&order->node_lanes, const uint16_t, node) : 0;
}

/* ---------------------------------------------------------------------------------------------------------- life */

/* Room for one more, doubling. */
static rondo_status order_room(rondo__buffer *buffer, size_t count) {
    if (buffer->capacity - buffer->count >= count) return RONDO_OK;
    size_t want = buffer->count + count, grown = buffer->capacity * 2u;
    return rondo__buffer_reserve(buffer, grown > want && grown <= buffer->maximum ? grown : want);
}

void rondo__order_destroy(rondo__order *order) {
    if (!order) return;
    for (uint32_t i = 0; i < order->lanes.count; i++) {
        rondo__buffer_deinit(&order_lane(order, i)->clock);
        rondo__buffer_deinit(&order_lane(order, i)->leaves);
    }
    rondo__buffer_deinit(&order->lanes);
    rondo__buffer_deinit(&order->points);
    rondo__buffer_deinit(&order->clocks);
    rondo__buffer_deinit(&order->leaves);
    rondo__buffer_deinit(&order->steps);
    rondo__buffer_deinit(&order->edges);
    rondo__buffer_deinit(&order->node_lanes);
    rondo_allocator allocator = order->allocator;
    rondo__free(&allocator, order, sizeof *order);
}

rondo_status rondo__order_add_lane(rondo__order *order, uint32_t *out_lane) {
    rondo__order_lane lane = {.last = 0};
    if (order->lanes.count >= RONDO__ORDER_LANES_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "a capture has at most %u streams", RONDO__ORDER_LANES_MAX);
    rondo__buffer_init(&lane.clock, &order->allocator, sizeof(uint64_t), RONDO__ORDER_LANES_MAX);
    rondo__buffer_init(&lane.leaves, &order->allocator, sizeof(uint32_t), ORDER_MAX);
    *out_lane = (uint32_t)order->lanes.count;
    return rondo__buffer_append(&order->lanes, &lane, 1);
}

static rondo_status order_fill(rondo__order *order, uint64_t nodes) {
    uint32_t lane;
    RONDO__TRY(rondo__order_add_lane(order, &lane));
    rondo__order_lane *first = order_lane(order, lane);
    first->last = nodes;
    first->started = true;
    if (!nodes) return RONDO_OK;
    const uint32_t leaf = (uint32_t)(nodes - 1u);
    RONDO__TRY(rondo__buffer_append(&order->node_lanes, NULL, (size_t)nodes));
    RONDO__TRY(rondo__buffer_append(&order->edges, &(rondo__order_edge){RONDO__ORDER_NONE, 0}, 1));
    return rondo__buffer_append(&first->leaves, &leaf, 1);
}

rondo_status rondo__order_create(const rondo_allocator *allocator, uint64_t nodes, rondo__order **out_order) {
    void *memory;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__order), &memory));
    rondo__order *order = memory;
    order->allocator = *allocator;
    rondo__buffer_init(&order->lanes, allocator, sizeof(rondo__order_lane), RONDO__ORDER_LANES_MAX);
    rondo__buffer_init(&order->points, allocator, sizeof(order_point), ORDER_MAX);
    rondo__buffer_init(&order->clocks, allocator, sizeof(uint64_t), ORDER_MAX);
    rondo__buffer_init(&order->leaves, allocator, sizeof(uint32_t), ORDER_MAX);
    rondo__buffer_init(&order->steps, allocator, sizeof(rondo__order_step), ORDER_MAX);
    rondo__buffer_init(&order->edges, allocator, sizeof(rondo__order_edge), ORDER_MAX);
    rondo__buffer_init(&order->node_lanes, allocator, sizeof(uint16_t), ORDER_MAX);
    rondo_status status = order_fill(order, nodes);
    if (status) {
        rondo__order_destroy(order);
        return status;
    }
    *out_order = order;
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- nodes */

rondo_status rondo__order_reserve(rondo__order *order, uint32_t lane) {
    RONDO__TRY(order_room(&order->node_lanes, 1));
    RONDO__TRY(order_room(&order->edges, order_lane(order, lane)->leaves.count + 1u));
    return order_room(&order_lane(order, lane)->leaves, 1);
}

static void order_edge(rondo__order *order, uint32_t from, uint64_t to) {
    *RONDO__BUFFER_AT(&order->edges, rondo__order_edge, order->edges.count) = (rondo__order_edge){from, (uint32_t)to};
    order->edges.count++;
}

void rondo__order_node(rondo__order *order, uint32_t lane, uint64_t node) {
    rondo__order_lane *l = order_lane(order, lane);
    uint32_t *leaves = l->leaves.data;
    bool plain = l->leaves.count == 1 && l->last && leaves[0] == l->last - 1u;
    for (size_t i = 0; !plain && i < l->leaves.count; i++) order_edge(order, leaves[i], node);
    if (!l->leaves.count) order_edge(order, RONDO__ORDER_NONE, node);
    *RONDO__BUFFER_AT(&order->node_lanes, uint16_t, order->node_lanes.count) = (uint16_t)lane;
    order->node_lanes.count++;
    leaves[0] = (uint32_t)node;
    l->leaves.count = 1;
    l->last = node + 1u;
}

rondo_status rondo__order_point(rondo__order *order, uint32_t lane, uint64_t nodes, uint32_t *out_point) {
    const rondo__order_lane *l = order_lane(order, lane);
    size_t lanes = order->lanes.count;
    RONDO__TRY(order_room(&order->points, 1));
    RONDO__TRY(order_room(&order->clocks, lanes));
    RONDO__TRY(order_room(&order->leaves, l->leaves.count + 1u));
    order_point point = {.before = nodes,
                         .sequence = order->sequence++,
                         .clock = order->clocks.count,
                         .leaves = order->leaves.count,
                         .leaf_count = (uint32_t)l->leaves.count,
                         .clock_count = (uint32_t)lanes,
                         .event = RONDO__ORDER_NONE,
                         .lane = (uint16_t)lane};
    for (uint32_t i = 0; i < lanes; i++)
        *RONDO__BUFFER_AT(&order->clocks, uint64_t, order->clocks.count++) = i == lane ? nodes : order_clock(l, i);
    if (l->leaves.count) {
        memcpy(RONDO__BUFFER_AT(&order->leaves, uint32_t, order->leaves.count), l->leaves.data,
               l->leaves.count * sizeof(uint32_t));
        order->leaves.count += l->leaves.count;
    }
    *out_point = (uint32_t)order->points.count;
    *order_point_at(order, *out_point) = point;
    order->points.count++;
    return RONDO_OK;
}

/* Whether the lane already comes after the node. */
static bool order_knows(const rondo__order *order, uint32_t lane, uint32_t node) {
    uint32_t other = rondo__order_lane_of(order, node);
    return other == lane || node < order_clock(order_lane(order, lane), other);
}

/* A step, and the record that it waits for when it is the first. */
static rondo_status order_add_wait(rondo__order *order, uint32_t lane, uint64_t nodes, uint32_t point) {
    order_point *p = order_point_at(order, point);
    rondo__order_step step = {nodes, order->sequence++, point, RONDO__ORDER_NONE, (uint16_t)lane, true};
    RONDO__TRY(order_room(&order->steps, 2));
    if (!p->waits++) {
        rondo__order_step record = {p->before, p->sequence, point, RONDO__ORDER_NONE, p->lane, false};
        *RONDO__BUFFER_AT(&order->steps, rondo__order_step, order->steps.count++) = record;
    }
    *RONDO__BUFFER_AT(&order->steps, rondo__order_step, order->steps.count++) = step;
    return RONDO_OK;
}

rondo_status rondo__order_wait(rondo__order *order, uint32_t lane, uint64_t nodes, uint32_t point) {
    rondo__order_lane *l = order_lane(order, lane);
    const order_point *p = order_point_at(order, point);
    const uint32_t *leaves = RONDO__BUFFER_AT(&order->leaves, const uint32_t, p->leaves);
    const uint64_t *clock = RONDO__BUFFER_AT(&order->clocks, const uint64_t, p->clock);
    bool news = !l->started;
    for (uint32_t i = 0; i < p->leaf_count && !news; i++) news = !order_knows(order, lane, leaves[i]);
    if (!news) return RONDO_OK;
    RONDO__TRY(order_room(&l->leaves, p->leaf_count + 1u));
    if (l->clock.count < p->clock_count)
        RONDO__TRY(rondo__buffer_append(&l->clock, NULL, p->clock_count - l->clock.count));
    RONDO__TRY(order_add_wait(order, lane, nodes, point));
    /* Of the lane's leaves those stay that the point does not come after; of the point's those come that are news. */
    uint32_t *own = l->leaves.data;
    size_t kept = 0;
    for (size_t i = 0; i < l->leaves.count; i++) {
        uint32_t other = rondo__order_lane_of(order, own[i]);
        if (other >= p->clock_count || own[i] >= clock[other]) own[kept++] = own[i];
    }
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (!order_knows(order, lane, leaves[i])) own[kept++] = leaves[i];
    l->leaves.count = kept;
    uint64_t *mine = l->clock.data;
    for (uint32_t i = 0; i < p->clock_count; i++)
        if (i != lane && clock[i] > mine[i]) mine[i] = clock[i];
    l->started = true;
    return RONDO_OK;
}

uint32_t rondo__order_unjoined(const rondo__order *order, uint64_t *out_node) {
    for (uint32_t i = 1; i < order->lanes.count; i++) {
        if (order_lane(order, i)->last <= order_clock(order_lane(order, 0), i)) continue;
        *out_node = order_lane(order, i)->last - 1u;
        return i;
    }
    return RONDO__ORDER_NONE;
}

/* ---------------------------------------------------------------------------------------------------------- seal */

/* Records were added when somebody first waited for them; they go where they happened. They come late by few places, and
 * a merge from below is linear however far. */
static void order_merge(const rondo__order_step *from, rondo__order_step *to, size_t low, size_t middle, size_t high) {
    size_t a = low, b = middle;
    for (size_t i = low; i < high; i++) {
        bool left = a < middle && (b >= high || from[a].sequence < from[b].sequence);
        to[i] = left ? from[a++] : from[b++];
    }
}

static rondo_status order_sort(rondo__order *order) {
    size_t count = order->steps.count;
    void *memory;
    if (count < 2) return RONDO_OK;
    RONDO__TRY(rondo__allocate_array(&order->allocator, count, sizeof(rondo__order_step), &memory));
    rondo__order_step *from = order->steps.data, *to = memory;
    for (size_t width = 1; width < count; width *= 2u) {
        for (size_t low = 0; low < count; low += 2u * width) {
            size_t middle = low + width < count ? low + width : count;
            order_merge(from, to, low, middle, low + 2u * width < count ? low + 2u * width : count);
        }
        rondo__order_step *other = from;
        from = to;
        to = other;
    }
    if (from == memory) memcpy(order->steps.data, memory, count * sizeof(rondo__order_step));
    rondo__free(&order->allocator, memory, count * sizeof(rondo__order_step));
    return RONDO_OK;
}

/* Points were for the capture; what stays takes no more than it needs. */
static void order_trim(rondo__order *order) {
    rondo__buffer_deinit(&order->points);
    rondo__buffer_deinit(&order->clocks);
    rondo__buffer_deinit(&order->leaves);
    rondo__buffer_trim(&order->steps);
    rondo__buffer_trim(&order->edges);
    rondo__buffer_trim(&order->node_lanes);
}

/* An event serves again once the last wait for its record was enqueued. */
rondo_status rondo__order_seal(rondo__order *order) {
    rondo__buffer idle;
    RONDO__TRY(order_sort(order));
    rondo__buffer_init(&idle, &order->allocator, sizeof(uint32_t), ORDER_MAX);
    rondo_status status = rondo__buffer_reserve(&idle, order->steps.count + 1u);
    order->events = 0;
    for (size_t i = 0; !status && i < order->steps.count; i++) {
        rondo__order_step *step = RONDO__BUFFER_AT(&order->steps, rondo__order_step, i);
        order_point *point = order_point_at(order, step->point);
        uint32_t *numbers = idle.data;
        if (!step->wait) point->event = idle.count ? numbers[--idle.count] : order->events++;
        step->event = point->event;
        if (step->wait && --point->waits == 0) numbers[idle.count++] = point->event;
    }
    rondo__buffer_deinit(&idle);
    if (!status) order_trim(order);
    return status;
}

/* --------------------------------------------------------------------------------------------------- looking at it */

static uint64_t order_buffer_bytes(const rondo__buffer *buffer) {
    return (uint64_t)buffer->capacity * buffer->element_size;
}

uint64_t rondo__order_bytes(const rondo__order *order) {
    if (!order) return 0;
    uint64_t bytes = sizeof *order + order_buffer_bytes(&order->lanes) + order_buffer_bytes(&order->points) +
                     order_buffer_bytes(&order->clocks) + order_buffer_bytes(&order->leaves) +
                     order_buffer_bytes(&order->steps) + order_buffer_bytes(&order->edges) +
                     order_buffer_bytes(&order->node_lanes);
    for (uint32_t i = 0; i < order->lanes.count; i++)
        bytes += order_buffer_bytes(&order_lane(order, i)->clock) + order_buffer_bytes(&order_lane(order, i)->leaves);
    return bytes;
}

uint64_t rondo__order_edges(const rondo__order *order, uint64_t nodes) {
    if (!order) return nodes ? nodes - 1u : 0;
    /* Every node has the edge from the one before it, but for those that are told of. */
    uint64_t told = 0, real = 0;
    for (size_t i = 0; i < order->edges.count; i++) {
        const rondo__order_edge *edge = RONDO__BUFFER_AT(&order->edges, const rondo__order_edge, i);
        told += i == 0 || edge[-1].to != edge->to;
        real += edge->from != RONDO__ORDER_NONE;
    }
    return nodes - told + real;
}

rondo_status rondo__order_walk_begin(rondo__order_walk *walk, const rondo_allocator *allocator,
                                     const rondo__order *order) {
    *walk = (rondo__order_walk){.order = order};
    rondo__buffer_init(&walk->last, allocator, sizeof(uint32_t), RONDO__ORDER_LANES_MAX);
    return rondo__buffer_append(&walk->last, NULL, order ? order->lanes.count : 1u);
}

void rondo__order_walk_end(rondo__order_walk *walk) { rondo__buffer_deinit(&walk->last); }

uint32_t rondo__order_walk_next(rondo__order_walk *walk, uint64_t node, const rondo__order_edge **out_edges,
                                rondo__order_edge *single) {
    const rondo__order *order = walk->order;
    uint32_t *last = RONDO__BUFFER_AT(&walk->last, uint32_t, rondo__order_lane_of(order, node)), count = 0;
    *single = (rondo__order_edge){*last - 1u, (uint32_t)node};
    *out_edges = single;
    bool told = false;
    for (; order && walk->edge < order->edges.count; walk->edge++) {
        const rondo__order_edge *edge = RONDO__BUFFER_AT(&order->edges, const rondo__order_edge, walk->edge);
        if (edge->to != node) break;
        if (!told) *out_edges = edge;
        told = true;
        count += edge->from != RONDO__ORDER_NONE;
    }
    if (!told) count = *last != 0;
    *last = (uint32_t)node + 1u;
    return count;
}
