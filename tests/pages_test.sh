#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The C examples of the pages, compiled and run on cpu and sim. Usage: SOURCE BUILD.
#
# All blocks of a page are one program: between what it finds there and what must be so afterwards, which stand below.
# Each call that returns a status must succeed, but for those on lines whose comment says that it fails.
set -euo pipefail
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

head() { # what every page finds
  cat <<'C'
#include "examples/must.h"
#include <string.h>
static int failures;
static rondo_status told(rondo_status status) {
    char text[2048];
    if (!status) return status;
    rondo_status_format(status, text, sizeof text);
    fprintf(stderr, "  %s\n", text);
    failures++;
    return status;
}
C
  sed -n 's/.*RONDO_MUST_USE rondo_status \(rondo_[a-z_]*\)(.*/#define \1(...) told((\1)(__VA_ARGS__))/p' \
    "$source"/include/rondo/runtime.h
  cat <<'C'
int main(int argc, char **argv) {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream, *other;
    rondo_instance_create(NULL, &instance);
    rondo_device_open(instance, argv[argc - 1], NULL, &device);
    rondo_stream_create(device, NULL, &stream);
    rondo_stream_create(device, NULL, &other);
C
}

before() { # page
  case $1 in
  docs/graph.md) cat <<'C' ;;
    enum { bytes = 400 };
    void *x, *x2, *y, *z, *numbers, *temporary;
    void **all[] = {&x, &x2, &y, &z, &numbers};
    rondo_event *forked, *joined;
    rondo_graph *child;
    rondo_generator *generator;
    for (int i = 0; i < 5; i++) rondo_memory_allocate(device, bytes, all[i]);
    for (int i = 0; i < 5; i++) rondo_stream_fill(stream, *all[i], (uint8_t)(i + 1), bytes);
    rondo_event_create(device, &forked);
    rondo_event_create(device, &joined);
    rondo_generator_create(device, 42, &generator);
    rondo_graph_create(device, NULL, &child);
    rondo_graph_capture_begin(child, stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL);
    rondo_stream_copy(stream, x2, z, 8, RONDO_COPY_DEVICE_TO_DEVICE);
    rondo_graph_capture_end(child, stream);
C
  README.md) cat <<'C' ;;
    enum { count = 64, bytes = 4 * count };
    float *x_host, *y_host, *z_host;
    void *x, *y, *z, *added, *multiplied;
    rondo_event *forked, *joined;
    rondo_kernel add, multiply;
    rondo_memory_host_allocate(device, bytes, (void **)&x_host);
    rondo_memory_host_allocate(device, bytes, (void **)&y_host);
    rondo_memory_host_allocate(device, bytes, (void **)&z_host);
    rondo_memory_allocate(device, bytes, &x);
    rondo_memory_allocate(device, bytes, &y);
    rondo_memory_allocate(device, bytes, &z);
    rondo_memory_allocate(device, bytes, &added);
    rondo_memory_allocate(device, bytes, &multiplied);
    rondo_event_create(device, &forked);
    rondo_event_create(device, &joined);
    for (int i = 0; i < count; i++) x_host[i] = (float)i, y_host[i] = 1000.0f, z_host[i] = 0.0f;
    rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 1, (const int64_t[]){count}, &add);
    rondo_kernel_prepare(device, "Mul", 2, RONDO_DTYPE_F32, 1, (const int64_t[]){count}, &multiply);
#define READ(name) {(uint64_t)(uintptr_t)name, bytes, RONDO_ACCESS_READ, 0}
#define WRITE(name) {(uint64_t)(uintptr_t)name, bytes, RONDO_ACCESS_WRITE, 0}
    const rondo_argument of_sum[3] = {READ(x), READ(y), WRITE(added)};
    const rondo_argument of_product[3] = {READ(x), READ(y), WRITE(multiplied)};
    const rondo_argument of_both[3] = {READ(added), READ(multiplied), WRITE(z)};
    rondo_call sum = {sizeof sum, 3, add, of_sum, "sum"};
    rondo_call product = {sizeof product, 3, multiply, of_product, "product"};
    rondo_call both = {sizeof both, 3, add, of_both, "both"};
C
  esac
}

after() { # page
  case $1 in
  docs/graph.md) cat <<'C' ;;
    float got[100];
    rondo_generator *again;
    void *other_numbers;
    rondo_stream_synchronize(stream);
    must_be(memcmp(z, (const char[4]){2, 2, 2, 2}, 4) == 0, "z is x2, which slot 0 was bound to");
    must_be(memcmp(x2, z, 8) == 0, "the child has copied");
    memcpy(got, numbers, sizeof got);
    rondo_generator_create(device, 42, &again);
    rondo_memory_allocate(device, bytes, &other_numbers);
    rondo_random_fill(stream, again, RONDO_DISTRIBUTION_UNIFORM, other_numbers, 100, 0.0f, 1.0f);
    rondo_stream_synchronize(stream);
    must_be(memcmp(got, other_numbers, sizeof got) == 0, "the seed acted at the second replay");
    rondo_graph_release(outer);
    rondo_graph_release(graph);
    rondo_generator_release(again);
    rondo_generator_release(generator);
    rondo_event_release(forked);
    rondo_event_release(joined);
    void *rest[] = {x, x2, z, numbers, other_numbers};
    for (int i = 0; i < 5; i++) rondo_memory_free(device, rest[i]);
C
  docs/memory.md) cat <<'C' ;;
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    rondo_stream_synchronize(other);
    rondo_memory_get_statistics(device, (rondo_pool_id){0, 0}, &statistics);
    must_be(statistics.allocations == 0 && statistics.reserved_bytes == 2u << 20, "the block is free, its segment kept");
C
  README.md) cat <<'C' ;;
    for (int i = 0; i < count; i++) must_be(z_host[i] == (float)(i + 1000 + i * 1000), "z = (x + y) + x * y");
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_graph_get_info(graph, &info);
    must_be(info.lanes == 2 && info.nodes == 6, "two branches");
    rondo_graph_release(graph);
    rondo_kernel_release(device, add);
    rondo_kernel_release(device, multiply);
    rondo_event_release(forked);
    rondo_event_release(joined);
    void *device_memory[] = {x, y, z, added, multiplied}, *host_memory[] = {x_host, y_host, z_host};
    for (int i = 0; i < 5; i++) rondo_memory_free(device, device_memory[i]);
    for (int i = 0; i < 3; i++) rondo_memory_host_free(device, host_memory[i]);
C
  esac
}

tail() { # how many calls of the page fail
  cat <<C
    must_be(failures == $1, "as many calls fail as the page says");
    rondo_stream_release(other);
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
C
}

for page in README.md docs/graph.md docs/memory.md; do
  awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$source/$page" >"$folder/blocks"
  [ -s "$folder/blocks" ] || { echo "$page has no example"; exit 1; }
  fails=$(grep -c '/\* fails' "$folder/blocks" || true)
  { head; before "$page"; cat "$folder/blocks"; after "$page"; tail "$fails"; } >"$folder/page.c"
  "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-result -Wno-unused-variable -I "$source" \
    -I "$source/include" -o "$folder/page" "$folder/page.c" "$build/lib/librondo.a" ${PAGES_FLAGS:-} -lm -lpthread -ldl
  for device in cpu sim; do
    "$folder/page" "$device"
    echo "$page on $device: its examples hold"
  done
done
