/* SPDX-License-Identifier: Apache-2.0
 *
 * The six kernels that every catalogue has. They take their words as plugin.h writes them, and no context. */
#include "planner.h"

#include <string.h>
#include <time.h>

/* Reason of a null address where there is something to touch. */
enum { CONTRACT_NO_ADDRESS = 1 };

static int32_t contract_fill(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t *out = RONDO__CPU_AT(uint64_t, words[0]);
    if (words[1] > 0 && !out) return CONTRACT_NO_ADDRESS;
    for (uint64_t i = 0; i < words[1]; i++) out[i] = words[2];
    return 0;
}

static int32_t contract_copy(const void *context, const uint64_t *words) {
    (void)context;
    if (words[2] == 0) return 0;
    if (words[0] == 0 || words[1] == 0) return CONTRACT_NO_ADDRESS;
    memmove(RONDO__CPU_AT(void, words[1]), RONDO__CPU_AT(void, words[0]), (size_t)words[2]);
    return 0;
}

static int32_t contract_iota(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t *out = RONDO__CPU_AT(uint64_t, words[0]);
    if (words[1] > 0 && !out) return CONTRACT_NO_ADDRESS;
    for (uint64_t i = 0; i < words[1]; i++) out[i] = words[2] + i;
    return 0;
}

/* Its context is the set's strip. */
typedef struct contract_add_context {
    rondo__cpu_binary_strip strip;
} contract_add_context;

static int32_t contract_add(const void *context, const uint64_t *words) {
    const contract_add_context *c = context;
    if (words[3] > 0 && (words[0] == 0 || words[1] == 0 || words[2] == 0)) return CONTRACT_NO_ADDRESS;
    c->strip(RONDO__CPU_AT(float, words[0]), RONDO__CPU_AT(float, words[1]), RONDO__CPU_AT(float, words[2]),
             (size_t)words[3]);
    return 0;
}

static uint64_t contract_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t contract_spin(const void *context, const uint64_t *words) {
    (void)context;
    const uint64_t start = contract_now();
    while (contract_now() - start < words[0]) {}
    return 0;
}

static void contract_philox_block(uint64_t counter, uint64_t seed, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        const uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t first = (uint32_t)(q >> 32) ^ c[1] ^ low, third = (uint32_t)(p >> 32) ^ c[3] ^ high;
        c[0] = first;
        c[1] = (uint32_t)q;
        c[2] = third;
        c[3] = (uint32_t)p;
    }
    memcpy(out, c, sizeof c);
}

/* Number n of a seed's stream is word n % 4 of block n / 4; out[0] gets number `offset`. */
static int32_t contract_philox(const void *context, const uint64_t *words) {
    (void)context;
    uint32_t *out = RONDO__CPU_AT(uint32_t, words[0]);
    if (words[1] > 0 && !out) return CONTRACT_NO_ADDRESS;
    uint32_t block[4];
    uint64_t number = words[3];
    if (number % 4 != 0) contract_philox_block(number / 4, words[2], block);
    for (uint64_t i = 0; i < words[1]; i++, number++) {
        if (number % 4 == 0) contract_philox_block(number / 4, words[2], block);
        out[i] = block[number % 4];
    }
    return 0;
}

static rondo_status contract_plan(rondo__cpu_plan *plan) {
    static const rondo_kernel_function functions[] = {contract_fill, contract_add,  contract_copy,
                                                      contract_iota, contract_spin, contract_philox};
    const uint32_t which = rondo__cpu_operator_find(plan->request->operator_name)->detail;
    plan->kernel.function = functions[which];
    plan->facts.variant = "contract";
    if (which != 1) return RONDO_OK;
    contract_add_context *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c, &c);
    if (!status) c->strip = plan->set->binary[RONDO__CPU_ADD][RONDO__CPU_BOTH];
    return status;
}

const rondo__cpu_operator rondo__cpu_contract_operators[] = {
    {"rondo.fill", contract_plan, 0}, {"rondo.add", contract_plan, 1},  {"rondo.copy", contract_plan, 2},
    {"rondo.iota", contract_plan, 3}, {"rondo.spin", contract_plan, 4}, {"rondo.philox", contract_plan, 5},
};
const uint32_t rondo__cpu_contract_operator_count =
    sizeof rondo__cpu_contract_operators / sizeof *rondo__cpu_contract_operators;
