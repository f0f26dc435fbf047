/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole library. */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include <acl/acl_base.h>
#include <acl/acl_mdl.h>
#include <acl/acl_rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* from abi.def: */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);
/* end of abi.def's part */

#ifdef __cplusplus
}
#endif

#endif
