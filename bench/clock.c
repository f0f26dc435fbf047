/* SPDX-License-Identifier: Apache-2.0
 *
 * Time, and what is made of samples. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_must(rondo_status status) {
    if (!status) return;
    char text[2048];
    rondo_status_format(status, text, sizeof text);
    fprintf(stderr, "rondo-bench: %s\n", text);
    exit(1);
}

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *samples, uint32_t count) {
    if (!count) return (double)NAN;
    qsort(samples, count, sizeof *samples, compare_double);
    return samples[count / 2];
}

double bench_minimum(const double *samples, uint32_t count) {
    double least = samples[0];
    for (uint32_t i = 1; i < count; ++i)
        if (samples[i] < least) least = samples[i];
    return least;
}
