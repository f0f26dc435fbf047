/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins that are part of the library. */
#ifndef RONDO_SRC_INSTANCE_EMBEDDED_H
#define RONDO_SRC_INSTANCE_EMBEDDED_H

#include <rondo/plugin.h>

typedef struct rondo__embedded_plugin {
    const char *name;
    rondo_plugin_entry_function entry;
} rondo__embedded_plugin;

/* In order of registration; ends with a null name. */
extern const rondo__embedded_plugin rondo__embedded_plugins[];

#endif
