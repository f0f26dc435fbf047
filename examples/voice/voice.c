/* SPDX-License-Identifier: Apache-2.0
 *
 * Silero's voice detector on real speech, frame by frame, as one captured graph: frame in, model, state carried over,
 * probability out. Usage: voice SILERO.onnx FOLDER_OF_WAV_FILES [DEVICE] */
#include "../must.h"
#include "wav.h"
#include <string.h>

enum { FRAME = 512, CONTEXT = 64, WINDOW = FRAME + CONTEXT, STATE = 2 * 128 };

static rondo_device *device;
static rondo_stream *stream;
static rondo_context *context;
static rondo_graph *graph;
static float *window, *probability;
static char *input, *state, *state_out, *output, *rate;

static void enqueue_frame(void) {
    must(rondo_stream_copy(stream, input, window, WINDOW * 4, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_context_run_eager(context, stream));
    must(rondo_stream_copy(stream, state, state_out, STATE * 4, RONDO_COPY_DEVICE_TO_DEVICE));
    must(rondo_stream_copy(stream, probability, output, 4, RONDO_COPY_DEVICE_TO_HOST));
}

static void load(rondo_instance *instance, const char *path) {
    static int64_t sample_rate = 16000;
    rondo_tensor_view value = {&sample_rate, 1, 0, 0, RONDO_DTYPE_I64, NULL, NULL, 0};
    rondo_value_binding values[] = {{"sr", &value}};
    rondo_dim_binding dims[] = {{"input", 0, 1, 0, 0}, {"input", 0, WINDOW, 1, 0}, {"state", 0, 1, 1, 0}};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.dims = dims;
    options.dim_count = 3;
    options.values = values;
    options.value_count = 1;
    rondo_ir_graph *model;
    rondo_plan *plan;
    rondo_executable *executable;
    must(rondo_onnx_import(instance, path, NULL, &model));
    must(rondo_compile(instance, model, &options, NULL, &plan));
    must(rondo_executable_create(device, plan, &executable));
    must(rondo_context_create(executable, &context));
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    must(rondo_plan_get_info(plan, &info));
    printf("compiled: %u nodes -> %u calls; arena %llu bytes, weights %llu bytes\n", info.nodes_in, info.calls,
           (unsigned long long)info.arena_bytes, (unsigned long long)info.weight_bytes);
    for (uint32_t i = 0; i < info.inputs; ++i) {
        rondo_tensor_info port;
        must(rondo_plan_input(plan, i, &port));
        must(rondo_context_bind_input(context, i,
                                      strcmp(port.name, "input") == 0 ? input
                                      : strcmp(port.name, "sr") == 0  ? rate
                                                                      : state));
    }
    must(rondo_context_bind_output(context, 0, output));
    must(rondo_context_bind_output(context, 1, state_out));
    rondo_executable_release(executable), rondo_plan_release(plan), rondo_ir_graph_release(model);
}

/* Every frame with the 64 samples before it; returns microseconds a frame. */
static double detect(const float *samples, size_t frames, int replay, float *probabilities) {
    double start = now_us();
    must(rondo_stream_fill(stream, state, 0, STATE * 4));
    memset(window, 0, WINDOW * 4);
    for (size_t f = 0; f < frames; ++f) {
        memcpy(window, window + FRAME, CONTEXT * 4);
        memcpy(window + CONTEXT, samples + f * FRAME, FRAME * 4);
        if (replay) must(rondo_graph_replay(graph, stream));
        else enqueue_frame();
        must(rondo_stream_synchronize(stream));
        probabilities[f] = *probability;
    }
    return (now_us() - start) / (double)frames;
}

/* Speech starts at 0.5, ends below 0.35, and a pause under half a second does not end it. */
static void print_intervals(const float *p, size_t frames) {
    double seconds = (double)FRAME / 16000.0, start = -1, end = -1;
    int speaking = 0, found = 0;
    for (size_t f = 0; f <= frames; ++f) {
        double time = (double)f * seconds;
        if (!speaking && f < frames && p[f] >= 0.5f) speaking = 1, start = start < 0 ? time : start;
        else if (speaking && (f == frames || p[f] < 0.35f)) speaking = 0, end = time;
        if (start >= 0 && !speaking && (f == frames || time - end >= 0.5))
            printf("  speech %2d: %6.2f s to %6.2f s\n", ++found, start, end), start = -1;
    }
    if (!found) printf("  no speech\n");
}

static void listen_to(const char *name, float *samples, size_t count) {
    size_t frames = (count + FRAME - 1) / FRAME;
    samples = realloc(samples, frames * FRAME * 4);
    float *eager = calloc(frames, 4), *replayed = calloc(frames, 4);
    must_be(samples && eager && replayed, "there is memory");
    memset(samples + count, 0, (frames * FRAME - count) * 4);
    double eager_us = detect(samples, frames, 0, eager), replay_us = detect(samples, frames, 1, replayed);
    must_be(memcmp(eager, replayed, frames * 4) == 0, "eager and replay give the same bits");
    printf("%s: %.1f s, %zu frames; eager %.1f us a frame, replay %.1f us a frame, same bits\n", name,
           (double)count / 16000, frames, eager_us, replay_us);
    print_intervals(replayed, frames);
    free(samples), free(eager), free(replayed);
}

static void append_file(const char *folder, const char *name, float **samples, size_t *count, size_t silence) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.wav", folder, name);
    const char *why = wav_append(path, samples, count);
    if (why) exit((fprintf(stderr, "%s: %s\n", path, why), 1));
    *samples = realloc(*samples, (*count + silence + 1) * 4);
    must_be(*samples != NULL, "there is memory");
    memset(*samples + *count, 0, silence * 4);
    *count += silence;
}

int main(int argc, char **argv) {
    static const char *const spoken[] = {"Front_Center", "Front_Left", "Front_Right", "Rear_Center",
                                         "Rear_Left",    "Rear_Right", "Side_Left",   "Side_Right"};
    if (argc < 3) return fprintf(stderr, "usage: voice SILERO.onnx WAV_FOLDER [DEVICE]\n"), 2;
    rondo_instance *instance;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 3 ? argv[3] : "cpu", NULL, &device));
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_memory_host_allocate(device, WINDOW * 4 + 4, (void **)&window));
    must(rondo_memory_allocate(device, 6272, (void **)&input)); /* all five device buffers, 64 bytes aligned */
    probability = window + WINDOW, state = input + 4096, state_out = input + 5120, output = input + 6144,
    rate = input + 6208;
    load(instance, argv[1]);

    must(rondo_graph_create(device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    enqueue_frame();
    must(rondo_graph_capture_end(graph, stream));
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    must(rondo_graph_get_info(graph, &info));
    printf("captured: %d kernels and %d copies\n", (int)info.kernels, (int)info.copies);

    size_t count = 16000, noise_count = 0;
    float *samples = calloc(count, 4), *noise = NULL;
    for (int i = 0; i < 8; ++i) append_file(argv[2], spoken[i], &samples, &count, 16000);
    append_file(argv[2], "Noise", &noise, &noise_count, 0);
    listen_to("eight-spoken-files", samples, count);
    listen_to("noise", noise, noise_count);

    rondo_graph_release(graph);
    rondo_context_release(context);
    must(rondo_memory_free(device, input));
    must(rondo_memory_host_free(device, window));
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
