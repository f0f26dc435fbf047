/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph trees: three functions over tensors, called again and again. The tree warms each up, records it, and replays it
 * from then on; a branch makes it bring its pool back to where the paths part. Usage: trees [DEVICE] */
#include <string.h>

#include "../must.h"

enum { COUNT = 4096, BYTES = COUNT * 4 };

static rondo_device *device;
static rondo_stream *stream;
static rondo_tree *tree;
static float *readable; /* host memory that the device may copy to */

/* A model: one elementwise kernel over its two inputs, into a new tensor. It never learns whether it is warmed up or
 * recorded: memory comes from where the tree wants it. */
static rondo_status elementwise(void *kernel, rondo_stream *on, rondo_array **inputs, uint32_t input_count,
                                rondo_array **outputs, uint32_t output_count) {
    (void)input_count;
    (void)output_count;
    void *x, *y, *z;
    must(rondo_array_create(on, RONDO_DTYPE_F32, 1, (const int64_t[]){COUNT}, &outputs[0]));
    must(rondo_array_data(inputs[0], &x));
    must(rondo_array_data(inputs[1], &y));
    must(rondo_array_data(outputs[0], &z));
    rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)x, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)y, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)z, BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = *(const rondo_kernel *)kernel;
    call.arguments = arguments;
    call.argument_count = 3;
    return rondo_stream_launch(on, &call);
}

/* A function of the tree; its second input is a parameter, whose address stays. */
static uint32_t add_function(const char *name, rondo_array_model *model) {
    static const uint32_t parameter = 1;
    rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
    uint32_t number;
    function.name = name;
    function.model = model;
    function.input_count = 2;
    function.output_count = 1;
    function.static_inputs = &parameter;
    function.static_count = 1;
    must(rondo_tree_add_function(tree, &function, &number));
    return number;
}

/* The call takes its inputs over, so that they may end early; what is needed afterwards is retained. */
static rondo_array *call(uint32_t function, rondo_array *x, rondo_array *parameter) {
    void *inputs[2] = {x, parameter}, *output;
    rondo_array_retain(parameter);
    must(rondo_tree_run(tree, function, stream, inputs, 2, &output, 1));
    return output;
}

static void check(const rondo_array *tensor, float first, float step, const char *what) {
    void *data;
    must(rondo_array_data(tensor, &data));
    must(rondo_stream_copy(stream, readable, data, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_stream_synchronize(stream));
    for (int i = 0; i < COUNT; ++i) must_be(readable[i] == first + step * (float)(i % 100), what);
}

static rondo_array *filled(float first, float step) {
    rondo_array *tensor;
    void *data;
    must(rondo_array_create(stream, RONDO_DTYPE_F32, 1, (const int64_t[]){COUNT}, &tensor));
    must(rondo_array_data(tensor, &data));
    for (int i = 0; i < COUNT; ++i) readable[i] = first + step * (float)(i % 100);
    must(rondo_stream_copy(stream, data, readable, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_synchronize(stream));
    return tensor;
}

static void say(int step, const char *second) {
    static rondo_tree_info before;
    rondo_tree_info now = RONDO_TREE_INFO_INIT;
    must(rondo_tree_get_info(tree, &now));
    printf("step %d: scale, %-6s %llu warmed up, %llu recorded, %llu replayed, %llu checkpoints\n", step, second,
           (unsigned long long)(now.warmups - before.warmups), (unsigned long long)(now.records - before.records),
           (unsigned long long)(now.replays - before.replays),
           (unsigned long long)(now.checkpoints - before.checkpoints));
    before = now;
}

static int32_t print(void *user, const char *data, size_t size) {
    (void)user;
    return fwrite(data, 1, size, stdout) == size ? 0 : 1;
}

int main(int argc, char **argv) {
    rondo_instance *instance;
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
    rondo_tensor_host host = RONDO_TENSOR_HOST_INIT;
    rondo_kernel add, multiply;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 1 ? argv[1] : "sim", NULL, &device));
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_memory_host_allocate(device, BYTES, (void **)&readable));
    must(rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 1, (const int64_t[]){COUNT}, &add));
    must(rondo_kernel_prepare(device, "Mul", 2, RONDO_DTYPE_F32, 1, (const int64_t[]){COUNT}, &multiply));
    must(rondo_graph_ops_native(device, &ops));
    must(rondo_tensor_host_native(device, NULL, &host));
    options.type = rondo_device_info(device)->name;
    options.ops = &ops;
    options.host = &host;
    options.cost_samples = 0; /* so small a function may gain nothing; here it shall be graphed all the same */
    must(rondo_tree_open(instance, &options, &tree));
    rondo_array_model adds = {elementwise, &add}, multiplies = {elementwise, &multiply};
    uint32_t scale = add_function("scale", &multiplies), shift = add_function("shift", &adds);
    uint32_t fade = add_function("fade", &multiplies);
    rondo_array *two = filled(2, 0), *one = filled(1, 0), *half = filled(0.5f, 0), *kept = NULL;

    for (int step = 1; step <= 7; ++step) {
        rondo_tree_mark_step(tree);                                /* outputs of the step before are used up */
        rondo_array *x = call(scale, filled((float)step, 1), two); /* 2 x: the tensor moves, and is taken over */
        rondo_array *y = call(step < 5 ? shift : fade, x, step < 5 ? one : half);
        if (step < 5) check(y, 2 * (float)step + 1, 2, "2 x + 1");
        else check(y, (float)step, 1, "2 x / 2");
        say(step, step < 5 ? "shift" : "fade");
        if (step == 7) kept = y;
        else rondo_array_release(y);
    }

    rondo_tree_mark_step(tree);
    rondo_array_release(call(scale, filled(9, 1), two));
    void *data;
    rondo_status stale = rondo_array_data(kept, &data);
    must_be(rondo_status_code(stale) == RONDO_CODE_STALE, "an output of the last step is used up");
    printf("an output of step 7, used in step 8: %s\n\n", rondo_status_message(stale));
    rondo_status_release(stale);
    must(rondo_tree_report(tree, false, print, NULL));

    rondo_array *const tensors[] = {kept, two, one, half};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; ++i) rondo_array_release(tensors[i]);
    rondo_tree_release(tree);
    rondo_kernel_release(device, add);
    rondo_kernel_release(device, multiply);
    must(rondo_memory_host_free(device, readable));
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
