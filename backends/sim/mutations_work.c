/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutations of what is enqueued: calls, copies, fills, host functions. */
#include <string.h>

#include "mutant.h"

/* The last operation of the stream and the one before it change places. kind < 0: whatever that one is. */
static void mutant_reorder(rondo__sim_stream *stream, int kind, rondo_copy_kind direction) {
    (void)pthread_mutex_lock(&stream->device->mutex);
    rondo__sim_operation **link = &stream->first;
    while (*link && (*link)->next && (*link)->next->next) link = &(*link)->next;
    rondo__sim_operation *one = *link, *two = one ? one->next : NULL;
    bool fits = two && rondo__sim_mutant_is_work(one) && rondo__sim_mutant_is_work(two);
    if (fits && kind >= 0) fits = (int)one->kind == kind && (!direction || one->direction == direction);
    if (fits) {
        *link = two;
        two->next = one;
        one->next = NULL;
        stream->end = &one->next;
    }
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

static uint64_t mutant_hash(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x100000001b3u; }

/* A kernel of our own in place of a fill or copy. */
static rondo_status mutant_instead(void *stream, rondo_kernel_function function, const char *name,
                                   const rondo_argument *arguments) {
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = function;
    call.argument_count = 3;
    call.arguments = arguments;
    call.name = name;
    return rondo__sim_fault_stream_table.launch(stream, &call);
}

/* -------------------------------------------------------------------------------------------------------- calls */

/* The arguments of the first call like this one, which is remembered; with `behind`, of the one before. */
static void mutant_old_words(rondo__sim_mutant_memory *memory, const rondo_call *call, rondo_argument *arguments,
                             bool behind) {
    rondo__sim_known_call fresh = {.kernel = call->kernel, .count = call->argument_count};
    if (fresh.count > RONDO__SIM_MUTANT_WORDS) fresh.count = RONDO__SIM_MUTANT_WORDS;
    if (call->name) strncpy(fresh.name, call->name, sizeof fresh.name - 1u);
    for (uint32_t i = 0; i < fresh.count; i++) fresh.words[i] = arguments[i].word;
    for (uint32_t i = 0; i < memory->call_count; i++) {
        rondo__sim_known_call *old = &memory->known_calls[i];
        if (old->kernel.function != fresh.kernel.function || old->kernel.context != fresh.kernel.context ||
            old->count != fresh.count || strcmp(old->name, fresh.name) != 0) {
            continue;
        }
        for (uint32_t w = 0; w < fresh.count; w++) arguments[w].word = old->words[w];
        if (behind) *old = fresh;
        return;
    }
    if (memory->call_count < RONDO__SIM_MUTANT_CALLS) memory->known_calls[memory->call_count++] = fresh;
}

static void mutant_spoil_philox(rondo__sim_device *device, const rondo_call *call, rondo_argument *arguments) {
    const rondo__sim_mutant_memory *memory = device->mutant;
    if (!memory->philox || call->kernel.function != memory->philox || call->argument_count != 4) return;
    if (RONDO__SIM_IS(device, PHILOX_OFFSET)) arguments[3].word = 0;
    if (RONDO__SIM_IS(device, PHILOX_BLOCK)) arguments[3].word &= ~(uint64_t)3;
    if (RONDO__SIM_IS(device, PHILOX_SEED)) arguments[2].word = (uint32_t)arguments[2].word;
}

static void mutant_spoil_arguments(rondo__sim_device *device, const rondo_call *call, rondo_argument *arguments) {
    bool old = RONDO__SIM_IS(device, REPLAY_OLD), behind = RONDO__SIM_IS(device, REPLAY_BEHIND);
    if ((old || behind) && rondo__sim_mutant_has_captured(device)) {
        (void)pthread_mutex_lock(&device->mutex);
        mutant_old_words(device->mutant, call, arguments, behind);
        (void)pthread_mutex_unlock(&device->mutex);
    }
    for (uint32_t i = 0; i < call->argument_count; i++) {
        if (arguments[i].access != RONDO_ACCESS_VALUE) continue;
        if (RONDO__SIM_IS(device, VALUES_NARROW)) arguments[i].word = (uint32_t)arguments[i].word;
        if (RONDO__SIM_IS(device, FIVE_WORDS) && i >= 5u) arguments[i].word = 0;
    }
    if (RONDO__SIM_IS(device, WORDS_SWAPPED) && call->argument_count >= 2u &&
        arguments[0].access != RONDO_ACCESS_VALUE && arguments[1].access != RONDO_ACCESS_VALUE &&
        arguments[0].length == arguments[1].length) {
        uint64_t word = arguments[0].word;
        arguments[0].word = arguments[1].word;
        arguments[1].word = word;
    }
    mutant_spoil_philox(device, call, arguments);
}

/* The second half of the numbers begins where the first did. */
static rondo_status mutant_repeat_philox(void *stream, const rondo_call *call, rondo_argument *arguments) {
    uint64_t count = arguments[1].word, half = count / 2u;
    rondo_status status = RONDO_OK;
    if (half) {
        arguments[1].word = half;
        status = rondo__sim_fault_stream_table.launch(stream, call);
        if (status) return status;
        arguments[0].word += half * sizeof(uint32_t);
        if (arguments[0].length) arguments[0].length -= half * sizeof(uint32_t);
        arguments[1].word = count - half;
    }
    return rondo__sim_fault_stream_table.launch(stream, call);
}

/* Whether the stream's call before was the same; the stream remembers this one. */
static bool mutant_is_repeated(rondo__sim_stream *stream, const rondo_call *call) {
    uint64_t hash = mutant_hash(0xcbf29ce484222325u, (uint64_t)(uintptr_t)call->kernel.context);
    hash = mutant_hash(hash, (uint64_t)(uintptr_t)call->kernel.function);
    for (uint32_t i = 0; i < call->argument_count; i++) hash = mutant_hash(hash, call->arguments[i].word);
    bool same = stream->mutant == hash;
    stream->mutant = hash;
    return same;
}

static bool mutant_drops_launch(rondo__sim_stream *stream, const rondo_call *call) {
    rondo__sim_device *device = stream->device;
    rondo__sim_mutant_memory *memory = device->mutant;
    uint64_t number = rondo__sim_mutant_count(&memory->launches);
    bool captured = rondo__sim_mutant_has_captured(device);
    if (RONDO__SIM_IS(device, LAUNCH_DROPS)) return number % 4u == 0;
    if (RONDO__SIM_IS(device, REPLAY_DROPS)) return captured && number % 3u == 0;
    return RONDO__SIM_IS(device, REPLAY_MERGES) && mutant_is_repeated(stream, call) && captured;
}

static void mutant_reorder_launch(rondo__sim_stream *stream) {
    rondo__sim_device *device = stream->device;
    const rondo__sim_mutant_memory *memory = device->mutant;
    bool captured = rondo__sim_mutant_has_captured(device);
    if ((RONDO__SIM_IS(device, LAUNCH_REORDERS) && __atomic_load_n(&memory->launches, __ATOMIC_RELAXED) % 2u == 0) ||
        (RONDO__SIM_IS(device, REPLAY_REORDERS) && captured)) {
        mutant_reorder(stream, -1, 0);
    }
    if (RONDO__SIM_IS(device, UPLOAD_LATE)) mutant_reorder(stream, RONDO__SIM_COPY, RONDO_COPY_HOST_TO_DEVICE);
}

/* What a device refuses that takes captures too strictly. */
static bool mutant_is_blocked(const rondo__sim_stream *stream) {
    rondo__sim_device *device = stream->device;
    const rondo__sim_mutant_memory *memory = device->mutant;
    bool work = RONDO__SIM_IS(device, BLOCKS_WORK), threads = RONDO__SIM_IS(device, BLOCKS_THREADS);
    if (!work && !threads) return false;
    (void)pthread_mutex_lock(&device->mutex);
    bool blocked =
        memory->capturing && !stream->capturing && (work || !pthread_equal(pthread_self(), memory->capturer));
    (void)pthread_mutex_unlock(&device->mutex);
    return blocked;
}

rondo_status rondo__sim_mutant_launch(void *handle, const rondo_call *given) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    const rondo__sim_mutant_memory *memory = device->mutant;
    rondo_argument arguments[RONDO_ARGUMENT_MAX];
    rondo_call call = *given;
    if (mutant_is_blocked(stream)) return rondo__sim_mutant_refuse(device, "a launch");
    if (mutant_drops_launch(stream, given)) return RONDO_OK;
    for (uint32_t i = 0; i < call.argument_count; i++) arguments[i] = given->arguments[i];
    mutant_spoil_arguments(device, given, arguments);
    call.arguments = arguments;
    if (RONDO__SIM_IS(device, NAME_LOST)) call.name = NULL;
    if (RONDO__SIM_IS(device, PHILOX_REPEATS) && memory->philox && call.kernel.function == memory->philox) {
        return mutant_repeat_philox(stream, &call, arguments);
    }
    rondo_status status = rondo__sim_fault_stream_table.launch(stream, &call);
    if (!status && RONDO__SIM_IS(device, LAUNCH_TWICE)) status = rondo__sim_stream_table.launch(stream, &call);
    if (RONDO__SIM_IS(device, COPY_OLD)) stream->mutant = (uint64_t)(uintptr_t)call.kernel.function;
    if (!status) mutant_reorder_launch(stream);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- copies */

static rondo_copy_kind mutant_guess_kind(rondo__sim_device *device, const rondo__sim_known_copy *copy) {
    (void)pthread_mutex_lock(&device->mutex);
    bool from = rondo__sim_range_is_device(device, copy->source, copy->bytes);
    bool to = rondo__sim_range_is_device(device, copy->destination, copy->bytes);
    (void)pthread_mutex_unlock(&device->mutex);
    return from && to ? RONDO_COPY_DEVICE_TO_DEVICE : from ? RONDO_COPY_DEVICE_TO_HOST : RONDO_COPY_HOST_TO_DEVICE;
}

/* What the first copy behind a call of the same kernel was told. */
static void mutant_old_copy(rondo__sim_stream *stream, rondo__sim_known_copy *copy) {
    rondo__sim_device *device = stream->device;
    rondo__sim_mutant_memory *memory = device->mutant;
    if (!stream->mutant || !rondo__sim_mutant_has_captured(device)) return;
    copy->key = stream->mutant;
    stream->mutant = 0;
    (void)pthread_mutex_lock(&device->mutex);
    uint32_t i = 0;
    while (i < memory->copy_count && memory->known_copies[i].key != copy->key) i++;
    if (i < memory->copy_count) *copy = memory->known_copies[i];
    else if (i < RONDO__SIM_MUTANT_CALLS) memory->known_copies[memory->copy_count++] = *copy;
    (void)pthread_mutex_unlock(&device->mutex);
}

/* The data of the first copy of that size to that address, which is remembered. Valid as long as the device. */
static void mutant_old_upload(rondo__sim_device *device, rondo__sim_known_copy *copy) {
    rondo__sim_mutant_memory *memory = device->mutant;
    if (copy->bytes > RONDO__SIM_MUTANT_UPLOAD || !rondo__sim_mutant_has_captured(device)) return;
    (void)pthread_mutex_lock(&device->mutex);
    uint32_t i = 0;
    for (; i < memory->upload_count; i++) {
        const rondo__sim_known_upload *known = &memory->known_uploads[i];
        if (known->destination == copy->destination && known->bytes == copy->bytes) break;
    }
    if (i < memory->upload_count) {
        copy->source = (uint64_t)(uintptr_t)memory->known_uploads[i].data;
    } else if (i < RONDO__SIM_MUTANT_CALLS) {
        rondo__sim_known_upload *fresh = &memory->known_uploads[memory->upload_count++];
        fresh->destination = copy->destination;
        fresh->bytes = copy->bytes;
        memcpy(fresh->data, (const void *)(uintptr_t)copy->source, (size_t)copy->bytes);
    }
    (void)pthread_mutex_unlock(&device->mutex);
}

/* Byte after byte from the start, which spoils what overlaps. words: destination, source, bytes. */
static int32_t mutant_copy_forward(const void *context, const uint64_t *words) {
    unsigned char *to = (unsigned char *)(uintptr_t)words[0];
    const unsigned char *from = (const unsigned char *)(uintptr_t)words[1];
    (void)context;
    for (uint64_t i = 0; i < words[2]; i++) to[i] = from[i];
    return 0;
}

static bool mutant_overlaps(const rondo__sim_known_copy *copy) {
    return copy->destination > copy->source && copy->destination - copy->source < copy->bytes;
}

static rondo_status mutant_copy_by_bytes(void *stream, const rondo__sim_known_copy *copy) {
    const rondo_argument arguments[] = {{copy->destination, copy->bytes, RONDO_ACCESS_WRITE, 0},
                                        {copy->source, copy->bytes, RONDO_ACCESS_READ, 0},
                                        {copy->bytes, 0, RONDO_ACCESS_VALUE, 0}};
    return mutant_instead(stream, mutant_copy_forward, "copy", arguments);
}

/* False: the copy is lost. */
static bool mutant_spoil_copy(rondo__sim_stream *stream, rondo__sim_known_copy *copy, rondo_copy_kind *kind) {
    rondo__sim_device *device = stream->device;
    rondo__sim_mutant_memory *memory = device->mutant;
    uint64_t number = rondo__sim_mutant_count(&memory->copies), swap = copy->destination;
    if (RONDO__SIM_IS(device, COPY_DROPS) && number % 3u == 0) return false;
    if (RONDO__SIM_IS(device, COPY_SHORT)) copy->bytes--;
    if (RONDO__SIM_IS(device, COPY_ODD)) copy->bytes &= ~(uint64_t)1;
    if (RONDO__SIM_IS(device, COPY_LARGE) && copy->bytes > RONDO__SIM_MUTANT_LARGE) {
        copy->bytes = RONDO__SIM_MUTANT_LARGE;
    }
    if (RONDO__SIM_IS(device, COPY_SHIFTED)) {
        copy->bytes--;
        copy->destination++;
    }
    if (!copy->bytes) return false;
    if (RONDO__SIM_IS(device, COPY_SWAPPED) && *kind == RONDO_COPY_DEVICE_TO_DEVICE) {
        copy->destination = copy->source;
        copy->source = swap;
    }
    if (RONDO__SIM_IS(device, COPY_KIND)) *kind = mutant_guess_kind(device, copy);
    if (RONDO__SIM_IS(device, COPY_OLD) && *kind == RONDO_COPY_DEVICE_TO_DEVICE) mutant_old_copy(stream, copy);
    if (RONDO__SIM_IS(device, UPLOAD_OLD) && *kind == RONDO_COPY_HOST_TO_DEVICE) mutant_old_upload(device, copy);
    return true;
}

rondo_status rondo__sim_mutant_copy(void *handle, uint64_t destination, uint64_t source, uint64_t bytes,
                                    rondo_copy_kind kind) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    rondo__sim_known_copy copy = {0, destination, source, bytes};
    if (mutant_is_blocked(stream)) return rondo__sim_mutant_refuse(device, "a copy");
    if (RONDO__SIM_IS(device, REPLAY_MERGES)) stream->mutant = 0;
    if (!mutant_spoil_copy(stream, &copy, &kind)) return RONDO_OK;
    if (RONDO__SIM_IS(device, COPY_FORWARD) && kind == RONDO_COPY_DEVICE_TO_DEVICE && mutant_overlaps(&copy)) {
        return mutant_copy_by_bytes(stream, &copy);
    }
    rondo_status status = rondo__sim_fault_stream_table.copy(stream, copy.destination, copy.source, copy.bytes, kind);
    if (!status && RONDO__SIM_IS(device, DOWNLOAD_EARLY) && kind == RONDO_COPY_DEVICE_TO_HOST) {
        mutant_reorder(stream, RONDO__SIM_LAUNCH, 0);
    }
    return status;
}

/* -------------------------------------------------------------------------------------------------------- fills */

/* The value as a 32-bit number, again and again. words: address, value, bytes. */
static int32_t mutant_fill_wide(const void *context, const uint64_t *words) {
    unsigned char *to = (unsigned char *)(uintptr_t)words[0];
    (void)context;
    for (uint64_t i = 0; i < words[2]; i++) to[i] = i % 4u ? 0 : (unsigned char)words[1];
    return 0;
}

rondo_status rondo__sim_mutant_fill(void *handle, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    const rondo_argument wide[] = {
        {address, bytes, RONDO_ACCESS_WRITE, 0}, {value, 0, RONDO_ACCESS_VALUE, 0}, {bytes, 0, RONDO_ACCESS_VALUE, 0}};
    if (mutant_is_blocked(stream)) return rondo__sim_mutant_refuse(device, "a fill");
    if (RONDO__SIM_IS(device, REPLAY_MERGES)) stream->mutant = 0;
    if (RONDO__SIM_IS(device, FILL_WIDE)) return mutant_instead(stream, mutant_fill_wide, "fill", wide);
    if (RONDO__SIM_IS(device, FILL_SHORT) && --bytes == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, FILL_VALUE)) value = 0;
    if (RONDO__SIM_IS(device, FILL_ALIGNED)) address &= ~(uint64_t)3;
    if (RONDO__SIM_IS(device, FILL_LONG)) {
        (void)pthread_mutex_lock(&device->mutex);
        if (!rondo__sim_range_problem(device, address, bytes + 1u)) bytes++;
        (void)pthread_mutex_unlock(&device->mutex);
    }
    return rondo__sim_fault_stream_table.fill(stream, address, value, bytes);
}

/* --------------------------------------------------------------------------------------------------- host calls */

/* Whether the same was enqueued before, since a capture ended. */
static bool mutant_knows_host_call(rondo__sim_device *device, rondo_host_function function, void *user) {
    rondo__sim_mutant_memory *memory = device->mutant;
    if (!rondo__sim_mutant_has_captured(device)) return false;
    (void)pthread_mutex_lock(&device->mutex);
    uint32_t i = 0;
    for (; i < memory->host_call_count; i++) {
        const rondo__sim_known_host *known = &memory->known_host_calls[i];
        if (known->function == function && known->user == user) break;
    }
    bool known = i < memory->host_call_count;
    if (!known && i < RONDO__SIM_MUTANT_CALLS) {
        memory->known_host_calls[memory->host_call_count++] = (rondo__sim_known_host){function, user};
    }
    (void)pthread_mutex_unlock(&device->mutex);
    return known;
}

rondo_status rondo__sim_mutant_host_call(void *handle, rondo_host_function function, void *user) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    rondo__sim_mutant_memory *memory = device->mutant;
    if (mutant_is_blocked(stream)) return rondo__sim_mutant_refuse(device, "a host call");
    if (RONDO__SIM_IS(device, REPLAY_MERGES)) stream->mutant = 0;
    if (RONDO__SIM_IS(device, HOST_SKIPPED) && rondo__sim_mutant_count(&memory->host_calls) % 2u == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, HOST_ONCE) && mutant_knows_host_call(device, function, user)) return RONDO_OK;
    if (RONDO__SIM_IS(device, HOST_EARLY)) {
        (void)function(user);
        return RONDO_OK;
    }
    rondo_status status = rondo__sim_fault_stream_table.host_call(stream, function, user);
    if (!status && RONDO__SIM_IS(device, HOST_TWICE)) {
        status = rondo__sim_stream_table.host_call(stream, function, user);
    }
    if (!status && RONDO__SIM_IS(device, HOST_REORDERS)) mutant_reorder(stream, RONDO__SIM_COPY, 0);
    return status;
}

/* --------------------------------------------------------------------------------------------------- conditions */

/* words: a cell of our own, the condition. */
static int32_t mutant_narrow(const void *context, const uint64_t *words) {
    int64_t value;
    (void)context;
    memcpy(&value, (const void *)(uintptr_t)words[1], sizeof value);
    value = (int64_t)(uint32_t)value;
    memcpy((void *)(uintptr_t)words[0], &value, sizeof value);
    return 0;
}

static rondo_status mutant_condition_narrow(void *stream, uint64_t cell, uint64_t address) {
    const rondo_argument arguments[] = {{cell, sizeof(int64_t), RONDO_ACCESS_WRITE, 0},
                                        {address, sizeof(int64_t), RONDO_ACCESS_READ, 0},
                                        {0, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_status status = mutant_instead(stream, mutant_narrow, "condition", arguments);
    return status ? status : rondo__sim_fault_stream_table.condition_begin(stream, cell);
}

/* Whether it goes no further; begins and ends are told apart by depth. */
static bool mutant_hides_condition(rondo__sim_stream *stream, bool begin) {
    const rondo__sim_device *device = stream->device;
    if (RONDO__SIM_IS(device, CONDITION_ALWAYS)) return true;
    if (!RONDO__SIM_IS(device, CONDITION_INNER)) return false;
    return begin ? stream->mutant++ != 0 : --stream->mutant != 0;
}

rondo_status rondo__sim_mutant_condition_begin(void *handle, uint64_t address) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    const rondo__sim_mutant_memory *memory = device->mutant;
    int64_t value = 0;
    if (mutant_hides_condition(stream, true)) return RONDO_OK;
    if (RONDO__SIM_IS(device, CONDITION_NARROW)) {
        return mutant_condition_narrow(stream, memory->cells + 2u * sizeof value, address);
    }
    if (RONDO__SIM_IS(device, CONDITION_NEVER)) address = memory->cells;
    if (RONDO__SIM_IS(device, CONDITION_EARLY)) {
        (void)pthread_mutex_lock(&device->mutex);
        if (!rondo__sim_range_problem(device, address, sizeof value)) {
            memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
        }
        (void)pthread_mutex_unlock(&device->mutex);
        address = memory->cells + (value ? sizeof value : 0);
    }
    return rondo__sim_fault_stream_table.condition_begin(stream, address);
}

void rondo__sim_mutant_condition_end(void *handle) {
    if (!mutant_hides_condition(handle, false)) rondo__sim_fault_stream_table.condition_end(handle);
}
