/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution as its request states it, for the files that plan one way each. */
#ifndef RONDO_BACKENDS_CPU_PLAN_CONV_H
#define RONDO_BACKENDS_CPU_PLAN_CONV_H

#include "planner.h"

enum { RONDO__CPU_CONV_NO_WORD = UINT32_MAX };

/* One dim stands across, with a height of 1. A line that goes down is turned to go across. */
typedef struct rondo__cpu_conv_problem {
    uint64_t batch, groups, channels, outputs;                          /* channels and outputs of one group */
    uint64_t size[2], out[2], kernel[2], step[2], spread[2], before[2]; /* down, right */
    const float *w_constant;
    const rondo_operand *bias;
    rondo__cpu_activation activation;
} rondo__cpu_conv_problem;

/* Whether the direct kernel takes it: constant weights, steps of 1, rows as long as the input's. */
bool rondo__cpu_flat_takes(const rondo__cpu_plan *plan, const rondo__cpu_conv_problem *problem);
RONDO_MUST_USE rondo_status rondo__cpu_flat_plan(rondo__cpu_plan *plan, const rondo__cpu_conv_problem *problem);

#endif
