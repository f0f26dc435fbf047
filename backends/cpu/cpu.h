/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast kernel catalogue of the CPU, as the plugin's entry sees it. */
#ifndef RONDO_BACKENDS_CPU_CPU_H
#define RONDO_BACKENDS_CPU_CPU_H

#include <rondo/plugin.h>

/* Makes the catalogue "cpu" over the widest kernel set that this processor runs, or over the one that the environment
 * variable RONDO_CPU_KERNELS names: INVALID_ARGUMENT (kernel) names a value that is unknown or does not run here. The
 * host table must outlive the catalogue. */
rondo_status rondo__cpu_catalogue_create(const rondo_host_api *host, rondo_catalogue *out);
/* `self` is out->self. Kernels prepared by it have been released. Null is ignored. */
void rondo__cpu_catalogue_destroy(void *self);

#endif
