/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph compiled, written, opened and run gives the bits that it gives without a file, on cpu and on sim; a file for
 * another target is refused by name, weights of another kernel set are packed again. */
#include <rondo/file.h>

#include "artifact/artifact_testing.h"
#include "exec/exec.h"
#include "harness/harness.h"

enum { ROWS = 3, IN = 40, OUT = 24 };

typedef struct file_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    rondo_ir_graph *graph;
    rondo_plan *plan, *opened;
    rondo_executable *executable;
    rondo_context *context;
    void *in, *out;
    at_bytes bytes;
    char path[256];
} file_fixture;

static void ff_release_run(file_fixture *f) {
    rondo_context_release(f->context);
    rondo_executable_release(f->executable);
    if (f->in) rondo_status_release(rondo_memory_free(f->device, f->in));
    if (f->out) rondo_status_release(rondo_memory_free(f->device, f->out));
    f->context = NULL;
    f->executable = NULL;
    f->in = f->out = NULL;
}

static void ff_close(file_fixture *f) {
    ff_release_run(f);
    at_free(&f->bytes);
    rondo_plan_release(f->opened);
    rondo_plan_release(f->plan);
    rondo_ir_graph_release(f->graph);
    rondo_stream_release(f->stream);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
    memset(f, 0, sizeof *f);
}

static float ff_number(uint32_t i) { return (float)((i * 2654435761u >> 20) % 257u) / 64.0f - 2.0f; }

/* y = Relu(reshape(x) W + b): the shape is an input whose value the plan needs, so it becomes a guard. */
static void ff_graph(file_fixture *f) {
    static float weights[IN * OUT], bias[OUT];
    rondo_test *t = f->t;
    rondo_ir_value x, shape, w, b, v, y;
    for (uint32_t i = 0; i < IN * OUT; i++) weights[i] = ff_number(i);
    for (uint32_t i = 0; i < OUT; i++) bias[i] = ff_number(i + 7777u);
    T_OK(t, rondo_ir_graph_create(f->instance, "layer", &f->graph));
    T_OK(t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){ROWS * IN}, NULL, &x));
    T_OK(t, rondo_ir_graph_add_input(f->graph, "shape", RONDO_DTYPE_I64, 1, (const int64_t[]){2}, NULL, &shape));
    T_OK(t, rondo_ir_graph_add_constant(f->graph, "w", RONDO_DTYPE_F32, 2, (const int64_t[]){IN, OUT}, weights, &w));
    T_OK(t, rondo_ir_graph_add_constant(f->graph, "b", RONDO_DTYPE_F32, 1, (const int64_t[]){OUT}, bias, &b));
    T_OK(t, rondo_ir_graph_add_node(f->graph, "Reshape", NULL, (const rondo_ir_value[]){x, shape}, 2, NULL, 0, &v, 1));
    T_OK(t, rondo_ir_graph_add_node(f->graph, "MatMul", NULL, (const rondo_ir_value[]){v, w}, 2, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_node(f->graph, "Add", NULL, (const rondo_ir_value[]){y, b}, 2, NULL, 0, &v, 1));
    T_OK(t, rondo_ir_graph_add_node(f->graph, "Relu", NULL, &v, 1, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_output(f->graph, y, "y"));
}

static const int64_t ff_sizes[2] = {ROWS, IN};
static const int64_t ff_sizes_shape[1] = {2};
static const rondo_tensor_view ff_shape = {
    (void *)(uintptr_t)ff_sizes, 1, 0, 1, RONDO_DTYPE_I64, ff_sizes_shape, NULL, 0};

static void ff_open(rondo_test *t, file_fixture *f, const char *device) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_value_binding value = {"shape", &ff_shape};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    f->t = t;
    T_DEFER(t, ff_close, f);
    instance.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&instance, &f->instance));
    T_OK(t, rondo_device_open(f->instance, device, NULL, &f->device));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->stream));
    ff_graph(f);
    options.values = &value;
    options.value_count = 1;
    T_OK(t, rondo_compile(f->instance, f->graph, &options, NULL, &f->plan));
    (void)snprintf(f->path, sizeof f->path, "%s/layer.rondo", rondo_test_folder(t));
    T_OK(t, rondo_plan_write(f->instance, f->plan, f->path));
}

static void ff_run(file_fixture *f, rondo_plan *plan, float *out) {
    float x[ROWS * IN];
    rondo_test *t = f->t;
    for (uint32_t i = 0; i < ROWS * IN; i++) x[i] = ff_number(i + 100u);
    T_OK(t, rondo_executable_create(f->device, plan, &f->executable));
    T_OK(t, rondo_context_create(f->executable, &f->context));
    T_OK(t, rondo_memory_allocate(f->device, sizeof x, &f->in));
    T_OK(t, rondo_memory_allocate(f->device, ROWS * OUT * sizeof(float), &f->out));
    T_OK(t, rondo_context_bind_input(f->context, 0, f->in));
    T_OK(t, rondo_context_bind_output(f->context, 0, f->out));
    T_OK(t, rondo_stream_copy(f->stream, f->in, x, sizeof x, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, rondo_context_run(f->context, f->stream));
    T_OK(t, rondo_stream_copy(f->stream, out, f->out, ROWS * OUT * sizeof(float), RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(f->stream));
}

static void ff_check(rondo_test *t, const float *out) {
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t c = 0; c < OUT; c++) {
            double sum = (double)ff_number(c + 7777u);
            for (uint32_t k = 0; k < IN; k++)
                sum += (double)ff_number(r * IN + k + 100u) * (double)ff_number(k * OUT + c);
            T_NEAR(t, out[r * OUT + c], sum > 0 ? sum : 0, 1e-3);
        }
    }
}

static void same_bits(rondo_test *t, const char *device) {
    file_fixture f;
    float online[ROWS * OUT], offline[ROWS * OUT];
    ff_open(t, &f, device);
    ff_run(&f, f.plan, online);
    ff_release_run(&f);
    ff_check(t, online);
    T_OK(t, rondo_plan_open(f.instance, f.path, &f.opened));
    rondo_plan_release(f.plan); /* and with nothing left of how it was made */
    f.plan = NULL;
    rondo_ir_graph_release(f.graph);
    f.graph = NULL;
    ff_run(&f, f.opened, offline);
    T_EQ(t, memcmp(online, offline, sizeof online), 0);
    if (strcmp(device, "cpu") != 0) return; /* where the host's memory is out of reach there is a copy */
    /* The weights were packed when the file was written, and are used where they are mapped. */
    const rondo__artifact *file = f.opened->file;
    uint32_t packed = 0;
    for (uint32_t i = 0; i < f.opened->step_count; i++) {
        if (!f.opened->steps[i].packed_bytes) continue;
        uint64_t at = f.executable->steps[i].packed - (uint64_t)(uintptr_t)file->data;
        T_TRUE(t, at < file->bytes);
        packed++;
    }
    T_EQ(t, packed, 1);
}

static void test_same_bits_on_cpu(rondo_test *t) { same_bits(t, "cpu"); }
static void test_same_bits_on_sim(rondo_test *t) { same_bits(t, "sim"); }

/* Replaces a string of the file by one of the same length, everywhere, and seals it. */
static void ff_replace(file_fixture *f, const char *from, const char *to) {
    at_load(f->t, f->path, &f->bytes);
    const rondo__artifact_entry *strings = at_entry(&f->bytes, 0);
    char *text = (char *)f->bytes.data + strings->offset, *end = text + strings->bytes;
    uint32_t found = 0;
    for (; text < end; text += strlen(text) + 1) {
        char *at = strstr(text, from);
        if (!at) continue;
        memcpy(at, to, strlen(to));
        found++;
    }
    T_TRUE(f->t, found > 0);
    at_seal(&f->bytes);
    T_OK(f->t, rondo__artifact_read(rondo_test_allocator(f->t), f->bytes.data, f->bytes.size, &f->opened));
}

static void test_another_target_is_refused_by_name(rondo_test *t) {
    file_fixture f;
    ff_open(t, &f, "cpu");
    ff_replace(&f, "cpu", "npu");
    T_FAILS(t, rondo_executable_create(f.device, f.opened, &f.executable), UNSUPPORTED, "made for target 'npu,ref'");
}

static void test_another_kernel_set_is_packed_again(rondo_test *t) {
    file_fixture f;
    float online[ROWS * OUT], offline[ROWS * OUT];
    ff_open(t, &f, "cpu");
    ff_run(&f, f.plan, online);
    ff_release_run(&f);
    ff_replace(&f, "cpu.", "gpu.");
    /* What lies there for the other set is no use here: were it taken, this would show. */
    for (uint32_t i = 0; i < f.opened->file->part_count; i++) {
        const rondo__artifact_part *part = &f.opened->file->parts[i];
        if (part->tag) memset((void *)(uintptr_t)part->data, 0x55, (size_t)part->bytes);
    }
    ff_run(&f, f.opened, offline);
    T_EQ(t, memcmp(online, offline, sizeof online), 0);
    ff_release_run(&f);
}

static void test_inputs_are_checked(rondo_test *t) {
    file_fixture f;
    float x[ROWS * IN] = {0};
    int64_t other[2] = {IN, ROWS}, length = ROWS * IN, shorter = 5;
    ff_open(t, &f, "cpu");
    T_OK(t, rondo_plan_open(f.instance, f.path, &f.opened));
    rondo_tensor_view view = {x, 1, 0, 1, RONDO_DTYPE_F32, &length, NULL, 0}, shape = ff_shape;
    T_OK(t, rondo_plan_check_input(f.opened, 0, &view));
    view.shape = &shorter;
    T_FAILS(t, rondo_plan_check_input(f.opened, 0, &view), INVALID_ARGUMENT, "input 'x' has 5 at axis 0");
    view.rank = 0;
    T_FAILS(t, rondo_plan_check_input(f.opened, 0, &view), INVALID_ARGUMENT, "input 'x' has rank 0");
    view.dtype = RONDO_DTYPE_I32;
    T_FAILS(t, rondo_plan_check_input(f.opened, 0, &view), INVALID_ARGUMENT, "input 'x' is int32");
    T_FAILS(t, rondo_plan_check_input(f.opened, 2, &view), OUT_OF_RANGE, "input 2");
    T_OK(t, rondo_plan_check_input(f.opened, 1, &shape));
    shape.data = other;
    T_FAILS(t, rondo_plan_check_input(f.opened, 1, &shape), INVALID_ARGUMENT, "another value");
    shape.data = NULL;
    T_FAILS(t, rondo_plan_check_input(f.opened, 1, &shape), INVALID_ARGUMENT, "must be known");
    T_TRUE(t, !rondo_plan_guard(f.opened, 0));
    T_EQ(t, memcmp(rondo_plan_guard(f.opened, 1), ff_sizes, sizeof ff_sizes), 0);
}

static void test_what_a_file_says_of_itself(rondo_test *t) {
    file_fixture f;
    rondo_plan_file_info info = RONDO_PLAN_FILE_INFO_INIT;
    rondo_plan_partition part = RONDO_PLAN_PARTITION_INIT;
    ff_open(t, &f, "cpu");
    T_FAILS(t, rondo_plan_get_file_info(f.plan, &info), INVALID_STATE, "comes from no file");
    T_FAILS(t, rondo_plan_get_partition(f.plan, 0, &part), INVALID_STATE, "comes from no file");
    T_OK(t, rondo_plan_open(f.instance, f.path, &f.opened));
    T_OK(t, rondo_plan_get_file_info(f.opened, &info));
    T_EQ(t, info.major, RONDO__ARTIFACT_MAJOR);
    T_EQ(t, info.partitions, 4);
    T_STR(t, info.writer, RONDO_VERSION_STRING);
    T_STR(t, info.target, "cpu,ref");
    T_OK(t, rondo_plan_get_partition(f.opened, 3, &part));
    T_EQ(t, part.kind, RONDO__ARTIFACT_PACKED);
    T_EQ(t, strncmp(part.kernel_set, "cpu.", 4), 0);
    T_FAILS(t, rondo_plan_get_partition(f.opened, 4, &part), OUT_OF_RANGE, "partition 4");
    T_FAILS(t, rondo_plan_open(f.instance, "/nowhere.rondo", &f.opened), NOT_FOUND, NULL);
    T_FAILS(t, rondo_plan_write(f.instance, f.plan, NULL), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T(test_same_bits_on_cpu), T_PLAIN(test_same_bits_on_sim), T(test_another_target_is_refused_by_name),
                T_PLAIN(test_another_kernel_set_is_packed_again), T_PLAIN(test_inputs_are_checked),
                T_PLAIN(test_what_a_file_says_of_itself))
