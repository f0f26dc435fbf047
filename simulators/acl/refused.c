/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that programs make and that are not simulated: they link, and say so. */
#include "sim.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* An error where an error is asked for, else 0 or null; the error is the thread's last one all the same. */
#define REFUSED_RESULT(result, error) _Generic((result)0, aclError : (error), size_t : (size_t)0, default : NULL)

static aclError refused(int call) {
    aclError error = sim_enter(call);
    return error ? error : sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "it is not simulated");
}

#define ACL_REFUSED(header, result, name, arguments) \
    result name arguments {                          \
        aclError error = refused(SIM_CALL_##name);   \
        (void)error;                                 \
        return REFUSED_RESULT(result, error);        \
    }
#include "abi.def"
