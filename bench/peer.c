/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX Runtime's C API without its header. Slots of the OrtApi table never move (the API only grows at its end:
 * onnxruntime_c_api.h says so); the numbers below are positions in that struct, checked against ONNX Runtime 1.32. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct ort_api_base {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version_string)(void);
} ort_api_base;

enum {
    ORT_GET_ERROR_MESSAGE = 2,
    ORT_CREATE_ENV = 3,
    ORT_CREATE_SESSION = 7,
    ORT_RUN = 9,
    ORT_CREATE_SESSION_OPTIONS = 10,
    ORT_SET_INTRA_OP_THREADS = 24,
    ORT_SET_INTER_OP_THREADS = 25,
    ORT_CREATE_TENSOR_WITH_DATA = 49,
    ORT_CREATE_CPU_MEMORY_INFO = 69,
    ORT_RELEASE_ENV = 92,
    ORT_RELEASE_STATUS = 93,
    ORT_RELEASE_MEMORY_INFO = 94,
    ORT_RELEASE_SESSION = 95,
    ORT_RELEASE_VALUE = 96,
    ORT_RELEASE_SESSION_OPTIONS = 100,
    ORT_API_VERSION_ASKED = 20
};

struct bench_peer {
    void *library;
    void *const *api;
    void *env, *memory_info;
};

enum { PEER_PORTS_MAX = 8 };
struct bench_peer_session {
    bench_peer *peer;
    void *session;
    const char *input_names[PEER_PORTS_MAX], *output_names[PEER_PORTS_MAX];
    void *inputs[PEER_PORTS_MAX], *outputs[PEER_PORTS_MAX];
    size_t input_count, output_count;
};

/* Data and function pointers are one size on every platform the peer exists for; memcpy keeps the compiler content. */
#define PEER_FUNCTION(peer, slot, type, name) \
    type name;                                \
    memcpy(&name, &(peer)->api[slot], sizeof name)

typedef void *(*ort_create_env)(int level, const char *id, void **out);
typedef void *(*ort_create_memory_info)(int allocator, int type, void **out);
typedef void *(*ort_create_options)(void **out);
typedef void *(*ort_set_int)(void *options, int value);
typedef void *(*ort_create_session)(void *env, const char *path, void *options, void **out);
typedef void *(*ort_create_tensor)(void *info, void *data, size_t bytes, const int64_t *shape, size_t rank, int type,
                                   void **out);
typedef void *(*ort_run)(void *session, const void *options, const char *const *input_names, const void *const *inputs,
                         size_t input_count, const char *const *output_names, size_t output_count, void **outputs);
typedef const char *(*ort_message)(void *status);
typedef void (*ort_release)(void *object);

static bool peer_good(const bench_peer *peer, void *status, const char *what) {
    if (!status) return true;
    PEER_FUNCTION(peer, ORT_GET_ERROR_MESSAGE, ort_message, message);
    PEER_FUNCTION(peer, ORT_RELEASE_STATUS, ort_release, release);
    fprintf(stderr, "rondo-bench: peer: %s: %s\n", what, message(status));
    release(status);
    return false;
}

static void peer_release(const bench_peer *peer, int slot, void *object) {
    PEER_FUNCTION(peer, slot, ort_release, release);
    if (object) release(object);
}

bench_peer *bench_peer_open(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "rondo-bench: peer: %s\n", dlerror());
        return NULL;
    }
    void *symbol = dlsym(handle, "OrtGetApiBase");
    const ort_api_base *(*get_base)(void) = NULL;
    memcpy(&get_base, &symbol, sizeof get_base);
    const void *api = get_base ? get_base()->get_api(ORT_API_VERSION_ASKED) : NULL;
    bench_peer *peer = calloc(1, sizeof *peer);
    if (!api || !peer) {
        fprintf(stderr, "rondo-bench: peer: %s has no API of version %d\n", library, ORT_API_VERSION_ASKED);
        free(peer);
        dlclose(handle);
        return NULL;
    }
    peer->library = handle;
    peer->api = api;
    PEER_FUNCTION(peer, ORT_CREATE_ENV, ort_create_env, create_env);
    PEER_FUNCTION(peer, ORT_CREATE_CPU_MEMORY_INFO, ort_create_memory_info, create_memory_info);
    if (!peer_good(peer, create_env(3, "rondo-bench", &peer->env), "environment") ||
        !peer_good(peer, create_memory_info(1, 0, &peer->memory_info), "memory info")) {
        bench_peer_close(peer);
        return NULL;
    }
    return peer;
}

bench_peer_session *bench_peer_load(bench_peer *peer, const char *model, int threads) {
    bench_peer_session *session = calloc(1, sizeof *session);
    void *options = NULL;
    if (!session) return NULL;
    session->peer = peer;
    PEER_FUNCTION(peer, ORT_CREATE_SESSION_OPTIONS, ort_create_options, create_options);
    PEER_FUNCTION(peer, ORT_SET_INTRA_OP_THREADS, ort_set_int, set_intra);
    PEER_FUNCTION(peer, ORT_SET_INTER_OP_THREADS, ort_set_int, set_inter);
    PEER_FUNCTION(peer, ORT_CREATE_SESSION, ort_create_session, create_session);
    bool good = peer_good(peer, create_options(&options), "options") &&
                peer_good(peer, set_intra(options, threads), "threads") &&
                peer_good(peer, set_inter(options, 1), "threads") &&
                peer_good(peer, create_session(peer->env, model, options, &session->session), model);
    peer_release(peer, ORT_RELEASE_SESSION_OPTIONS, options);
    if (good) return session;
    bench_peer_unload(session);
    return NULL;
}

static bool peer_tensors(bench_peer *peer, const bench_peer_tensor *tensors, size_t count, const char **names,
                         void **values) {
    PEER_FUNCTION(peer, ORT_CREATE_TENSOR_WITH_DATA, ort_create_tensor, create_tensor);
    for (size_t i = 0; i < count; ++i) {
        const bench_peer_tensor *t = &tensors[i];
        names[i] = t->name;
        if (!peer_good(peer,
                       create_tensor(peer->memory_info, t->data, t->bytes, t->shape, t->rank, t->type, &values[i]),
                       t->name))
            return false;
    }
    return true;
}

bool bench_peer_bind(bench_peer_session *session, const bench_peer_tensor *inputs, size_t input_count,
                     const bench_peer_tensor *outputs, size_t output_count) {
    if (input_count > PEER_PORTS_MAX || output_count > PEER_PORTS_MAX) return false;
    session->input_count = input_count;
    session->output_count = output_count;
    return peer_tensors(session->peer, inputs, input_count, session->input_names, session->inputs) &&
           peer_tensors(session->peer, outputs, output_count, session->output_names, session->outputs);
}

bool bench_peer_run(bench_peer_session *session) {
    PEER_FUNCTION(session->peer, ORT_RUN, ort_run, run);
    return peer_good(session->peer,
                     run(session->session, NULL, session->input_names, (const void *const *)session->inputs,
                         session->input_count, session->output_names, session->output_count, session->outputs),
                     "run");
}

void bench_peer_unload(bench_peer_session *session) {
    if (!session) return;
    for (size_t i = 0; i < session->input_count; ++i)
        peer_release(session->peer, ORT_RELEASE_VALUE, session->inputs[i]);
    for (size_t i = 0; i < session->output_count; ++i)
        peer_release(session->peer, ORT_RELEASE_VALUE, session->outputs[i]);
    peer_release(session->peer, ORT_RELEASE_SESSION, session->session);
    free(session);
}

void bench_peer_close(bench_peer *peer) {
    if (!peer) return;
    peer_release(peer, ORT_RELEASE_MEMORY_INFO, peer->memory_info);
    peer_release(peer, ORT_RELEASE_ENV, peer->env);
    /* The library stays: it keeps threads and handlers that do not outlive an unload. */
    free(peer);
}
