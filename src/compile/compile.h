/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler without an instance: a graph, catalogues and options in; a concrete graph and a plan out. The public
 * rondo_compile looks the catalogues up and calls this. */
#ifndef RONDO_SRC_COMPILE_COMPILE_H
#define RONDO_SRC_COMPILE_COMPILE_H

#include "ir/ir.h"
#include "kernel/kernel.h"
#include "plan/plan.h"

/* As rondo_compile. `kernels`: where the plan's kernels are looked for, best first. `folder`: host kernels that
 * evaluate what is constant ("ref"). `target` is written into the plan. options may be null. The results keep a
 * reference to `graph`, whose constants they share. */
RONDO_MUST_USE rondo_status rondo__compile(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                                           const rondo__kernel_set *folder, const char *target,
                                           const rondo_ir_graph *graph, const rondo_compile_options *options,
                                           rondo_ir_graph **out_compiled, rondo_plan **out_plan);

#endif
