/* SPDX-License-Identifier: Apache-2.0
 *
 * Once for the process: beginning, end, and what the library says of itself. */
#include "sim.h"

aclError aclInit(const char *configPath) {
    (void)configPath; /* only of the first call, and nothing of it is simulated */
    SIM_ENTER(aclInit);
    sim_lock();
    uint64_t before = sim.initialised++;
    return sim_leave(before ? sim_fail(ACL_ERROR_REPEAT_INITIALIZE, "the library was initialised before")
                            : ACL_SUCCESS);
}

aclError aclFinalize(void) {
    SIM_ENTER(aclFinalize);
    sim_lock();
    aclError error =
        sim.initialised ? ACL_SUCCESS : sim_fail(ACL_ERROR_REPEAT_FINALIZE, "there is nothing to finalize");
    sim.initialised = 0;
    return sim_leave(error);
}

aclError aclFinalizeReference(uint64_t *refCount) {
    SIM_ENTER(aclFinalizeReference);
    sim_lock();
    aclError error =
        sim.initialised ? ACL_SUCCESS : sim_fail(ACL_ERROR_REPEAT_FINALIZE, "there is nothing to finalize");
    if (!error) sim.initialised--;
    if (refCount) *refCount = sim.initialised;
    return sim_leave(error);
}

static aclError init_package(const char *name) {
    static const char *const known[] = {"runtime", "driver", "toolkit", "opp", "cann"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], name) == 0) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_INVALID_FILE, "there is no package '%.64s'", name);
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
    SIM_ENTER(aclsysGetVersionStr);
    if (!pkgName || !versionStr) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    SIM_CHECK(init_package(pkgName));
    memcpy(versionStr, "9.2.0.simulated", sizeof "9.2.0.simulated");
    return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum) {
    SIM_ENTER(aclsysGetVersionNum);
    if (!pkgName || !versionNum) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    SIM_CHECK(init_package(pkgName));
    *versionNum = 90200000;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void) {
    sim_count_one(SIM_CALL_aclrtGetSocName);
    return "Ascend-simulated";
}

/* Failures of work reach the callback; what it gets is opaque to programs, and null here. */
aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
    SIM_BEGIN(aclrtExceptionInfoCallbackRegister);
    if (!callback) return sim_fail(ACL_ERROR_INVALID_PARAM, "the callback is null");
    sim_lock();
    aclError error = sim.exception ? sim_fail(ACL_ERROR_RT_PARAM_INVALID, "there is a callback already") : ACL_SUCCESS;
    if (!error) sim.exception = callback;
    return sim_leave(error);
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
    SIM_BEGIN(aclrtExceptionInfoCallbackUnregister);
    if (!callback) return sim_fail(ACL_ERROR_INVALID_PARAM, "the callback is null");
    sim_lock();
    aclError error = sim.exception == callback ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_PARAM_INVALID, "it is not there");
    if (!error) sim.exception = NULL;
    return sim_leave(error);
}
