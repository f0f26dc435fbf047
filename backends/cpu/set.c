/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel sets are in this build, and which of them this processor can run. */
#include "set.h"

#include <string.h>

extern const rondo__cpu_set rondo__cpu_set_base;
#if defined(RONDO__CPU_HAS_V3)
extern const rondo__cpu_set rondo__cpu_set_v3;
#endif
#if defined(RONDO__CPU_HAS_V4)
extern const rondo__cpu_set rondo__cpu_set_v4;
#endif

static const rondo__cpu_set *const set_all[] = {
    &rondo__cpu_set_base,
#if defined(RONDO__CPU_HAS_V3)
    &rondo__cpu_set_v3,
#endif
#if defined(RONDO__CPU_HAS_V4)
    &rondo__cpu_set_v4,
#endif
};
enum { SET_COUNT = sizeof set_all / sizeof *set_all };

const rondo__cpu_set *rondo__cpu_set_at(uint32_t index) { return index < SET_COUNT ? set_all[index] : NULL; }

bool rondo__cpu_set_runs(const rondo__cpu_set *set) {
    if (set == &rondo__cpu_set_base) return true;
#if defined(RONDO__CPU_HAS_V3)
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (set == &rondo__cpu_set_v3) return v3;
#endif
#if defined(RONDO__CPU_HAS_V4)
    if (set == &rondo__cpu_set_v4)
        return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return false;
}

rondo_status rondo__cpu_set_choose(const rondo_host_api *host, const char *name, const rondo__cpu_set **out_set) {
    bool any = !name || !*name;
    for (uint32_t i = SET_COUNT; i-- > 0;) {
        const rondo__cpu_set *set = set_all[i];
        if (!any && strcmp(set->name, name) != 0) continue;
        if (rondo__cpu_set_runs(set)) {
            *out_set = set;
            return RONDO_OK;
        }
        if (!any)
            return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, KERNEL,
                                     "RONDO_CPU_KERNELS=%s: this processor cannot run that kernel set", name);
    }
    return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, KERNEL,
                             "RONDO_CPU_KERNELS=%s: there is no such kernel set in this build; use base, v3 or v4",
                             name);
}
