/* SPDX-License-Identifier: Apache-2.0
 *
 * The six kernels that every catalogue has, so that conformance can run on any device. They take their words as
 * plugin.h writes them, and no context. */
#include "ref.h"

#include <time.h>

static int32_t contract_fill(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t *out = (uint64_t *)rondo__ref_address(words[0]);
    if (words[1] > 0 && !out) return RONDO__REF_NO_ADDRESS;
    for (uint64_t i = 0; i < words[1]; i++) out[i] = words[2];
    return RONDO__REF_OK;
}

static int32_t contract_add(const void *context, const uint64_t *words) {
    (void)context;
    const float *a = (const float *)rondo__ref_address(words[0]), *b = (const float *)rondo__ref_address(words[1]);
    float *out = (float *)rondo__ref_address(words[2]);
    if (words[3] > 0 && (!a || !b || !out)) return RONDO__REF_NO_ADDRESS;
    for (uint64_t i = 0; i < words[3]; i++) out[i] = a[i] + b[i];
    return RONDO__REF_OK;
}

static int32_t contract_copy(const void *context, const uint64_t *words) {
    (void)context;
    if (words[2] == 0) return RONDO__REF_OK;
    if (words[0] == 0 || words[1] == 0) return RONDO__REF_NO_ADDRESS;
    memmove(rondo__ref_address(words[1]), rondo__ref_address(words[0]), (size_t)words[2]);
    return RONDO__REF_OK;
}

static int32_t contract_iota(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t *out = (uint64_t *)rondo__ref_address(words[0]);
    if (words[1] > 0 && !out) return RONDO__REF_NO_ADDRESS;
    for (uint64_t i = 0; i < words[1]; i++) out[i] = words[2] + i;
    return RONDO__REF_OK;
}

static uint64_t contract_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t contract_spin(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t start = contract_now();
    while (contract_now() - start < words[0]) {}
    return RONDO__REF_OK;
}

void rondo__ref_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Number n of the stream of a seed is word n % 4 of the block whose counter is n / 4; the key is the seed. `offset` is
 * the number that out[0] gets. */
static int32_t contract_philox(const void *context, const uint64_t *words) {
    (void)context;
    uint32_t *out = (uint32_t *)rondo__ref_address(words[0]);
    if (words[1] > 0 && !out) return RONDO__REF_NO_ADDRESS;
    const uint32_t key[2] = {(uint32_t)words[2], (uint32_t)(words[2] >> 32)};
    uint32_t block[4] = {0, 0, 0, 0};
    for (uint64_t i = 0; i < words[1]; i++) {
        uint64_t number = words[3] + i;
        if (i == 0 || number % 4 == 0) {
            const uint32_t counter[4] = {(uint32_t)(number / 4), (uint32_t)(number / 4 >> 32), 0, 0};
            rondo__ref_philox_block(counter, key, block);
        }
        out[i] = block[number % 4];
    }
    return RONDO__REF_OK;
}

static const struct {
    const char *name;
    rondo_kernel_function function;
} contract_kernels[] = {
    {"rondo.fill", contract_fill}, {"rondo.add", contract_add},   {"rondo.copy", contract_copy},
    {"rondo.iota", contract_iota}, {"rondo.spin", contract_spin}, {"rondo.philox", contract_philox},
};

const char *rondo__ref_contract_at(uint32_t index) {
    return index < sizeof contract_kernels / sizeof *contract_kernels ? contract_kernels[index].name : NULL;
}

rondo_kernel_function rondo__ref_contract_find(const char *name) {
    for (size_t i = 0; i < sizeof contract_kernels / sizeof *contract_kernels; i++) {
        if (strcmp(contract_kernels[i].name, name) == 0) return contract_kernels[i].function;
    }
    return NULL;
}
