/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers between the core and a backend: each shows the tables of a device, has handles of its own, and calls the tables
 * below it. Asked for when a device is opened:
 *
 *   layers=NAME+NAME   the first named is the one that the core calls; "none" is no layer
 *   trace=FILE         where the layer "trace" writes; {device} in it stands for the device, as cpu-0
 *
 * or for every device by the environment's RONDO_LAYERS, "NAME+NAME" or "NAME+NAME,trace=FILE"; settings that name
 * layers take its place.
 */
#ifndef RONDO_SRC_DEVICE_LAYERS_LAYERS_H
#define RONDO_SRC_DEVICE_LAYERS_LAYERS_H

#include <rondo/plugin.h>

#include "base/allocator.h"
#include "base/log.h"

#define RONDO__LAYERS_MAX 8u

typedef int32_t rondo__layer_kind;
enum { RONDO__LAYER_VALIDATE = 0, RONDO__LAYER_TRACE = 1, RONDO__LAYER_KINDS = 2 };

typedef struct rondo__layers {
    rondo_allocator allocator;
    uint32_t count;
    rondo__layer_kind kinds[RONDO__LAYERS_MAX];
    char *rest;       /* what is the backend's; null when that is nothing */
    char *trace_file; /* or null */
} rondo__layers;

/* Takes apart settings, which may be null, and the environment. INVALID_ARGUMENT names what is wrong. On success give it
 * back with deinit. */
RONDO_MUST_USE rondo_status rondo__layers_read(const rondo_allocator *allocator, const char *settings,
                                               rondo__layers *out_layers);
void rondo__layers_deinit(rondo__layers *layers);

/* Puts the layers on an open device: *table and *device become those of the uppermost. On failure they are what can be
 * closed. */
RONDO_MUST_USE rondo_status rondo__layers_stack(const rondo__layers *layers, const rondo__log *log, const char *type,
                                                uint32_t index, const rondo_device_table **table, void **device);

#endif
