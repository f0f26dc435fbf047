/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins that are part of the library, in the order in which an instance registers them. The order of types follows
 * from it: cpu first, so that an accelerator is what comes after. */
#include "instance/embedded.h"

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);
rondo_status rondo_plugin_entry_cpu(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);
rondo_status rondo_plugin_entry_sim(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);
rondo_status rondo_plugin_entry_ascend(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

const rondo__embedded_plugin rondo__embedded_plugins[] = {{"ref", rondo_plugin_entry_ref},
                                                          {"cpu", rondo_plugin_entry_cpu},
                                                          {"sim", rondo_plugin_entry_sim},
                                                          {"ascend", rondo_plugin_entry_ascend},
                                                          {NULL, NULL}};
