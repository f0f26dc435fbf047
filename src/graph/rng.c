/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox, and the host kernels that make distributions of it. One number an element, but for normal, where two numbers
 * make two elements (Box-Muller): from u in (0, 1] and v in [0, 1), sqrt(-2 ln u) cos(2 pi v) and sin. What is not 32-bit
 * integers is computed in double precision and rounded once. */
#include "graph/rng.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

#define RNG_TWO_PI 6.283185307179586476925286766559
#define RNG_UNIT 2.3283064365386963e-10 /* 2^-32 */

void rondo__rng_philox(uint64_t block, uint64_t seed, uint32_t out[4]) {
    uint32_t a = (uint32_t)block, b = (uint32_t)(block >> 32), c = 0, d = 0;
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = UINT64_C(0xD2511F53) * a, q = UINT64_C(0xCD9E8D57) * c;
        a = (uint32_t)(q >> 32) ^ b ^ low;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ high;
        d = (uint32_t)p;
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

typedef struct rng_form {
    rondo_distribution distribution;
    bool cells;
} rng_form;

/* Four elements from four numbers. */
static void rng_uniform(const uint32_t *numbers, double a, double b, float *out) {
    for (int i = 0; i < 4; i++) {
        float value = (float)(a + (double)numbers[i] * RNG_UNIT * (b - a));
        out[i] = value < (float)b || b <= a ? value : nextafterf((float)b, (float)a); /* b itself is never reached */
    }
}

static void rng_normal(const uint32_t *numbers, double mean, double deviation, float *out) {
    for (int i = 0; i < 4; i += 2) {
        double radius = sqrt(-2.0 * log(((double)numbers[i] + 1.0) * RNG_UNIT));
        double angle = RNG_TWO_PI * ((double)numbers[i + 1] * RNG_UNIT);
        out[i] = (float)(mean + deviation * (radius * cos(angle)));
        out[i + 1] = (float)(mean + deviation * (radius * sin(angle)));
    }
}

static void rng_four(rondo_distribution distribution, const uint32_t *numbers, double a, double b, char *out) {
    float floats[4];
    uint8_t bytes[4];
    switch (distribution) {
    case RONDO_DISTRIBUTION_BITS: memcpy(out, numbers, sizeof floats); return;
    case RONDO_DISTRIBUTION_BERNOULLI:
        for (int i = 0; i < 4; i++) bytes[i] = (double)numbers[i] * RNG_UNIT < a;
        memcpy(out, bytes, sizeof bytes);
        return;
    case RONDO_DISTRIBUTION_UNIFORM: rng_uniform(numbers, a, b, floats); break;
    case RONDO_DISTRIBUTION_NORMAL: rng_normal(numbers, a, b, floats); break;
    default:
        for (int i = 0; i < 4; i++) floats[i] = (double)numbers[i] * RNG_UNIT < a ? 0.0f : (float)(1.0 / (1.0 - a));
    }
    memcpy(out, floats, sizeof floats);
}

uint32_t rondo__rng_element(rondo_distribution distribution) {
    return distribution == RONDO_DISTRIBUTION_BERNOULLI ? 1u : 4u;
}

static int32_t rng_fill(const void *context, const uint64_t *words) {
    const rng_form *form = context;
    uint64_t seed = words[RONDO__RNG_CELLS], offset = words[RONDO__RNG_OFFSET], cells[2];
    const uint32_t size = rondo__rng_element(form->distribution);
    char *out = (char *)(uintptr_t)words[RONDO__RNG_OUT], rest[16];
    float parameters[2];
    uint32_t numbers[4];
    memcpy(parameters, &words[RONDO__RNG_FORM], sizeof parameters);
    if (form->cells) {
        memcpy(cells, (const void *)(uintptr_t)seed, sizeof cells);
        seed = cells[0];
        offset += cells[1];
    }
    for (uint64_t done = 0; done < words[RONDO__RNG_COUNT]; done += 4) {
        uint64_t left = words[RONDO__RNG_COUNT] - done;
        rondo__rng_philox(offset / 4u + done / 4u, seed, numbers);
        rng_four(form->distribution, numbers, (double)parameters[0], (double)parameters[1], left < 4 ? rest : out);
        if (left < 4) memcpy(out, rest, (size_t)left * size);
        out += 4u * size;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- the call */

static const rng_form rng_forms[2][5] = {
    {{0, false}, {1, false}, {2, false}, {3, false}, {4, false}},
    {{0, true}, {1, true}, {2, true}, {3, true}, {4, true}},
};
static const char *const rng_names[] = {"random bits", "random uniform", "random normal", "random bernoulli",
                                        "random dropout"};
enum { RNG_DISTRIBUTIONS = sizeof rng_names / sizeof *rng_names };

bool rondo__rng_is_captured(rondo_kernel kernel) {
    return kernel.function == rng_fill && ((const rng_form *)kernel.context)->cells;
}

rondo_status rondo__rng_taken(rondo_distribution distribution, uint64_t count, uint64_t *out_taken) {
    uint64_t bytes;
    (void)distribution; /* two numbers make two elements: one each for all of them */
    if (!rondo__checked_mul_u64(count, rondo__rng_element(distribution), &bytes) || count > UINT64_MAX - 3u)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "%llu random elements are more than any memory holds",
                           (unsigned long long)count);
    *out_taken = (count + 3u) / 4u * 4u;
    return RONDO_OK;
}

void rondo__rng_call(rondo_distribution distribution, bool captured, uint64_t out, uint64_t count, uint64_t place,
                     uint64_t offset, float a, float b, rondo_argument arguments[RONDO__RNG_WORDS], rondo_call *call) {
    const float parameters[2] = {a, b};
    const uint64_t bytes = count * rondo__rng_element(distribution);
    arguments[RONDO__RNG_OUT] = (rondo_argument){out, bytes, RONDO_ACCESS_WRITE, 0};
    arguments[RONDO__RNG_COUNT] = (rondo_argument){count, 0, RONDO_ACCESS_VALUE, 0};
    arguments[RONDO__RNG_CELLS] = (rondo_argument){place, captured ? RONDO__RNG_CELLS_BYTES : 0,
                                                   captured ? RONDO_ACCESS_READ : RONDO_ACCESS_VALUE, 0};
    arguments[RONDO__RNG_OFFSET] = (rondo_argument){offset, 0, RONDO_ACCESS_VALUE, 0};
    arguments[RONDO__RNG_FORM] = (rondo_argument){0, 0, RONDO_ACCESS_VALUE, 0};
    memcpy(&arguments[RONDO__RNG_FORM].word, parameters, sizeof parameters);
    *call = (rondo_call)RONDO_CALL_INIT;
    call->kernel = (rondo_kernel){rng_fill, &rng_forms[captured][distribution]};
    call->argument_count = RONDO__RNG_WORDS;
    call->arguments = arguments;
    call->name = rng_names[distribution];
}

rondo_status rondo__rng_check(rondo_distribution distribution, float a, float b) {
    bool probability = distribution == RONDO_DISTRIBUTION_BERNOULLI || distribution == RONDO_DISTRIBUTION_DROPOUT;
    if (distribution < 0 || distribution >= RNG_DISTRIBUTIONS)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%d is no distribution", (int)distribution);
    if (distribution == RONDO_DISTRIBUTION_UNIFORM && !(isfinite(a) && isfinite(b) && a <= b))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "uniform numbers from %g to %g: bounds are finite and in order",
                           (double)a, (double)b);
    if (distribution == RONDO_DISTRIBUTION_NORMAL && !(isfinite(a) && isfinite(b) && b >= 0.0f))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "normal numbers of mean %g and deviation %g: both are finite, the deviation is not negative",
                           (double)a, (double)b);
    if (probability && !(a >= 0.0f && a <= 1.0f))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: %g is no probability", rng_names[distribution], (double)a);
    return RONDO_OK;
}
