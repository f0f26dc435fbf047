/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of the example, in C: what the simulator loads in place of a device's binary. Each block adds its part. */
#include <acl_simulator.h>

enum { PER_BLOCK = 2048 };

__attribute__((visibility("default"))) int32_t add_custom(const aclsim_launch *launch);

int32_t add_custom(const aclsim_launch *launch) {
    const struct {
        const float *x, *y;
        float *z;
    } *a = launch->arguments;
    for (uint32_t i = launch->block * PER_BLOCK; i < (launch->block + 1u) * PER_BLOCK; ++i) a->z[i] = a->x[i] + a->y[i];
    return 0;
}
