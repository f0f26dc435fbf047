/* SPDX-License-Identifier: Apache-2.0
 *
 * One function a gate, each of which sees all the facts and answers for its own question alone; the words that people
 * know from PyTorch's skip messages are kept. */
#include <stdarg.h>
#include <string.h>

#include "base/escape.h"
#include "base/sized.h"
#include "tree/gate.h"

/* Bytes of a text that are for one name, one trace. */
#define RULES_NAME 129u
#define RULES_TRACE 257u

/* ------------------------------------------------------------------------------------------------------ words */

void rondo__gate_say(rondo_gate_verdict *verdict, const char *format, ...) {
    size_t length = strlen(verdict->text), room = sizeof verdict->text - length;
    va_list arguments;
    if (room < 8) return; /* it ends in "..." already: names come here escaped, so that a cut leaves less */
    va_start(arguments, format);
    (void)rondo__escape_format(verdict->text + length, room, format, arguments);
    va_end(arguments);
}

void rondo__gate_say_name(rondo_gate_verdict *verdict, const char *name, size_t most) {
    char text[RONDO_GATE_TEXT_MAX];
    (void)rondo__escape(text, most < sizeof text ? most : sizeof text, name, strlen(name));
    rondo__gate_say(verdict, "%s", text);
}

void rondo__gate_say_trace(rondo_gate_verdict *verdict, const char *trace) {
    if (!trace || !*trace) return;
    rondo__gate_say(verdict, ". Found from : ");
    rondo__gate_say_name(verdict, trace, RULES_TRACE);
}

static bool rules_refuse(rondo_gate_verdict *verdict, const char *text) {
    rondo__gate_say(verdict, "%s", text);
    return true;
}

/* As torch.device shows itself. */
static void rules_say_device(rondo_gate_verdict *verdict, const rondo_gate_device *device) {
    rondo__gate_say(verdict, "device(type='");
    rondo__gate_say_name(verdict, device->type, RULES_NAME);
    rondo__gate_say(verdict, "'");
    if (device->index >= 0) rondo__gate_say(verdict, ", index=%d", (int)device->index);
    rondo__gate_say(verdict, ")");
}

static bool rules_flag(const rondo__gate_question *question, uint32_t flag) {
    return (question->facts->flags & flag) != 0;
}

/* Counts inputs that have all of `with` and none of `without`; the first is where the verdict points. */
static const rondo_gate_input *rules_inputs(const rondo__gate_question *question, rondo_gate_verdict *verdict,
                                            uint32_t with, uint32_t without) {
    const rondo_gate_facts *facts = question->facts;
    const rondo_gate_input *first = NULL;
    for (uint32_t i = 0; i < facts->input_count; i++) {
        const rondo_gate_input *input = &facts->inputs[i];
        if ((input->flags & with) != with || (input->flags & without) != 0) continue;
        if (!first) {
            first = input;
            verdict->index = i;
        }
        verdict->count++;
    }
    return first;
}

/* The trace of the first of them that has one: the first may be written where nobody knows. */
static const char *rules_trace(const rondo__gate_question *question, uint32_t with, uint32_t without) {
    const rondo_gate_facts *facts = question->facts;
    for (uint32_t i = 0; i < facts->input_count; i++) {
        const rondo_gate_input *input = &facts->inputs[i];
        if ((input->flags & with) == with && !(input->flags & without) && input->trace && *input->trace)
            return input->trace;
    }
    return NULL;
}

/* "cpu device (arg0_1)" */
static void rules_say_one(rondo_gate_verdict *verdict, const char *what, const char *name) {
    rondo__gate_say(verdict, "%s (", what);
    rondo__gate_say_name(verdict, name && *name ? name : "without a name", RULES_NAME);
    rondo__gate_say(verdict, ")");
}

/* ------------------------------------------------------------------------------------- switches and annotations */

static bool rules_switched_off(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    if (!rules_flag(question, RONDO_GATE_FLAG_SWITCHED_OFF)) return false;
    if (facts->forward == RONDO_GATE_ANNOTATION_ON) return false;
    if (facts->mode == RONDO_TREE_BACKWARD && facts->backward == RONDO_GATE_ANNOTATION_ON) return false;
    return rules_refuse(verdict, "graphs are not switched on");
}

/* A forward that is annotated takes its backward along; a backward's annotation is its own. */
static bool rules_annotation(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    if (facts->forward == RONDO_GATE_ANNOTATION_OFF)
        return rules_refuse(verdict, "annotation (override_cudagraphs fwd=False)");
    if (facts->mode == RONDO_TREE_BACKWARD && facts->backward == RONDO_GATE_ANNOTATION_OFF)
        return rules_refuse(verdict, "annotation (override_cudagraphs bwd=False)");
    return false;
}

static bool rules_cpp_wrapper(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (!rules_flag(question, RONDO_GATE_FLAG_CPP_WRAPPER)) return false;
    if (rules_flag(question, RONDO_GATE_FLAG_PARTITION))
        return rules_refuse(verdict, "cpp wrapper enabled: it does not support graph partition yet");
    if (rules_flag(question, RONDO_GATE_FLAG_AHEAD_OF_TIME))
        return rules_refuse(verdict, "cpp wrapper enabled: compiled ahead of time");
    return false;
}

/* It is the inputs that decide: an output of fixed shape may come from symbolic inputs, and each size is recorded. */
static bool rules_symbolic(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (!rules_flag(question, RONDO_GATE_FLAG_SKIP_SYMBOLIC) || rules_flag(question, RONDO_GATE_FLAG_PARTITION))
        return false;
    const rondo_gate_input *first = rules_inputs(question, verdict, RONDO_GATE_INPUT_SYMBOLIC, 0);
    if (!first) return false;
    rules_say_one(verdict, "graph with symbolic shapes inputs", first->name);
    rondo__gate_say_trace(verdict, rules_trace(question, RONDO_GATE_INPUT_SYMBOLIC, 0));
    return true;
}

static bool rules_operator(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    char why[RONDO_GATE_TEXT_MAX];
    if (rules_flag(question, RONDO_GATE_FLAG_PARTITION)) return false; /* they are split off */
    for (uint32_t i = 0; i < facts->operator_count; i++) {
        if (!rondo__gate_operator_refused(question->gates, facts->flags, &facts->operators[i], why)) continue;
        if (!verdict->count++) {
            verdict->index = i;
            rondo__gate_say_operator(verdict, &facts->operators[i], why);
        }
    }
    return verdict->count != 0;
}

/* ---------------------------------------------------------------------------------------------------- devices */

/* Asked of the function's own devices: another one's allocator is no reason against it. */
static bool rules_allocator(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (question->cached) return false;
    verdict->index = question->uncached;
    verdict->count = 1;
    return rules_refuse(verdict, "cudagraph capture requires the caching allocator; current allocator is uncached");
}

static bool rules_cpu(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    if (rules_flag(question, RONDO_GATE_FLAG_PARTITION)) return false;
    if (question->host) {
        const rondo_gate_device *host = &facts->devices[question->host - 1u];
        verdict->index = question->host - 1u;
        verdict->count = 1;
        rules_say_one(verdict, "cpu device", host->node);
        rondo__gate_say_trace(verdict, host->trace);
        return true;
    }
    uint32_t without = RONDO_GATE_INPUT_UNUSED;
    if (rules_flag(question, RONDO_GATE_FLAG_SCALARS)) without |= RONDO_GATE_INPUT_ZERO_DIM;
    const rondo_gate_input *first = rules_inputs(question, verdict, RONDO_GATE_INPUT_HOST, without);
    if (!first) return false;
    rules_say_one(verdict, "cpu device", first->name);
    rondo__gate_say_trace(verdict, rules_trace(question, RONDO_GATE_INPUT_HOST, without));
    return true;
}

static bool rules_multiple(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (question->device_count < 2) return false;
    verdict->index = (uint32_t)(question->devices[0] - question->facts->devices);
    verdict->count = question->device_count;
    rondo__gate_say(verdict, "multiple devices: ");
    for (uint32_t i = 0; i < question->device_count; i++) {
        if (i) rondo__gate_say(verdict, ", ");
        rules_say_device(verdict, question->devices[i]);
    }
    return true;
}

static bool rules_no_device(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (question->device_count || (question->host && !rules_flag(question, RONDO_GATE_FLAG_PARTITION))) return false;
    return rules_refuse(verdict, "no device: nothing of it runs on one that captures graphs");
}

static bool rules_capture(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (question->device_count != 1 || question->capable || question->own_path) return false;
    const rondo_gate_device *device = question->devices[0];
    verdict->index = (uint32_t)(device - question->facts->devices);
    verdict->count = 1;
    rules_say_device(verdict, device);
    rondo__gate_say(verdict, device->ops ? " answers that it captures no graphs" : " has no graph implementation");
    return true;
}

/* ----------------------------------------------------------------------------------------------------- inputs */

static bool rules_mutated(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (rules_flag(question, RONDO_GATE_FLAG_MUTATION)) return false;
    if (!rules_inputs(question, verdict, RONDO_GATE_INPUT_MUTATED, RONDO_GATE_INPUT_STATIC)) return false;
    rondo__gate_say(verdict, "mutated inputs (%u instances)", verdict->count);
    rondo__gate_say_trace(verdict, rules_trace(question, RONDO_GATE_INPUT_MUTATED, RONDO_GATE_INPUT_STATIC));
    return true;
}

static bool rules_storage(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (!rules_inputs(question, verdict, RONDO_GATE_INPUT_STORAGE_MUTATED, 0)) return false;
    rondo__gate_say(verdict, "input storage mutation (%u instances)", verdict->count);
    rondo__gate_say_trace(verdict, rules_trace(question, RONDO_GATE_INPUT_STORAGE_MUTATED, 0));
    return true;
}

static bool rules_overlap(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (rules_flag(question, RONDO_GATE_FLAG_OVERLAP)) return false;
    const rondo_gate_input *first = rules_inputs(question, verdict, RONDO_GATE_INPUT_OVERLAP, 0);
    if (!first) return false;
    rules_say_one(verdict, "complex memory overlap", first->name);
    return true;
}

static bool rules_not_tensor(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_input *first = rules_inputs(question, verdict, RONDO_GATE_INPUT_NOT_TENSOR, 0);
    if (!first) return false;
    rules_say_one(verdict, "non-Tensor inputs", first->name);
    return true;
}

/* ------------------------------------------------------------------------------------- streams, policy, sizes */

static bool rules_streams(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    if (rules_flag(question, RONDO_GATE_FLAG_STREAMS) || question->facts->stream_count < 2) return false;
    verdict->count = question->facts->stream_count;
    rondo__gate_say(verdict, "multiple streams: %u, and they do not fork from one and join it", verdict->count);
    return true;
}

static bool rules_policy(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    return rules_flag(question, RONDO_GATE_FLAG_POLICY_REFUSED) && rules_refuse(verdict, "the policy does not wrap it");
}

static bool rules_disabled(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const char *reason = question->facts->disabled;
    return reason && rules_refuse(verdict, *reason ? reason : "disabled by the host, which gives no reason");
}

static bool rules_bisector(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    return rules_flag(question, RONDO_GATE_FLAG_BISECTED) && rules_refuse(verdict, "the compiler bisector");
}

static bool rules_partition(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    return rules_flag(question, RONDO_GATE_FLAG_PARTITION) && !question->facts->partition_count &&
           rules_refuse(verdict, "no partition that can be graphed");
}

static bool rules_size(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    if (!facts->size || !facts->wanted_count) return false;
    for (uint32_t i = 0; i < facts->wanted_count; i++)
        if (!facts->size_count || !memcmp(facts->size, facts->wanted + (size_t)i * facts->size_count,
                                          facts->size_count * sizeof *facts->size))
            return false;
    verdict->count = facts->wanted_count;
    rondo__gate_say(verdict, "size (");
    for (uint32_t i = 0; i < facts->size_count && i < 8; i++)
        rondo__gate_say(verdict, "%s%lld", i ? ", " : "", (long long)facts->size[i]);
    rondo__gate_say(verdict, "%s) is none of the %u to capture", facts->size_count > 8 ? ", ..." : "", verdict->count);
    return true;
}

static bool rules_size_limit(const rondo__gate_question *question, rondo_gate_verdict *verdict) {
    const rondo_gate_facts *facts = question->facts;
    if (!facts->size_limit || facts->sizes_seen <= facts->size_limit) return false;
    verdict->count = facts->sizes_seen;
    rondo__gate_say(verdict, "dynamic shapes: %u distinct sizes, and the limit is %u", facts->sizes_seen,
                    facts->size_limit);
    return true;
}

const rondo__gate_refuses rondo__gate_rules[RONDO_GATE_COUNT] = {
    [RONDO_GATE_SWITCHED_OFF] = rules_switched_off,
    [RONDO_GATE_ANNOTATION] = rules_annotation,
    [RONDO_GATE_CPP_WRAPPER] = rules_cpp_wrapper,
    [RONDO_GATE_SYMBOLIC_SHAPES] = rules_symbolic,
    [RONDO_GATE_INCOMPATIBLE_OP] = rules_operator,
    [RONDO_GATE_CACHING_ALLOCATOR] = rules_allocator,
    [RONDO_GATE_CPU_DEVICE] = rules_cpu,
    [RONDO_GATE_MULTIPLE_DEVICES] = rules_multiple,
    [RONDO_GATE_NO_DEVICE] = rules_no_device,
    [RONDO_GATE_NO_CAPTURE] = rules_capture,
    [RONDO_GATE_MUTATED_INPUTS] = rules_mutated,
    [RONDO_GATE_MUTATED_STORAGE] = rules_storage,
    [RONDO_GATE_MEMORY_OVERLAP] = rules_overlap,
    [RONDO_GATE_NON_TENSOR_INPUTS] = rules_not_tensor,
    [RONDO_GATE_MULTIPLE_STREAMS] = rules_streams,
    [RONDO_GATE_POLICY] = rules_policy,
    [RONDO_GATE_DISABLED] = rules_disabled,
    [RONDO_GATE_BISECTOR] = rules_bisector,
    [RONDO_GATE_NO_PARTITION] = rules_partition,
    [RONDO_GATE_SIZE_NOT_WANTED] = rules_size,
    [RONDO_GATE_SIZE_LIMIT] = rules_size_limit,
};

/* ------------------------------------------------------------------------------------------- facts, questions */

#define RULES_FLAGS ((1u << 13) - 1u)
#define RULES_DEVICE_FLAGS ((1u << 3) - 1u)
#define RULES_INPUT_FLAGS ((1u << 9) - 1u)

static rondo_status rules_check_arrays(const rondo_gate_facts *facts) {
    if ((facts->device_count && !facts->devices) || (facts->input_count && !facts->inputs) ||
        (facts->operator_count && !facts->operators))
        return RONDO__FAIL(INVALID_ARGUMENT, TREE,
                           "rondo_gate_facts: %u devices, %u inputs, %u operators, and an array is null",
                           facts->device_count, facts->input_count, facts->operator_count);
    if (facts->size && facts->size_count && facts->wanted_count && !facts->wanted)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: %u sizes are wanted, and their array is null",
                           facts->wanted_count);
    for (uint32_t i = 0; i < facts->device_count; i++) {
        const rondo_gate_device *device = &facts->devices[i];
        if (!device->type || !*device->type)
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: device %u has no type", i);
        if (device->flags & ~RULES_DEVICE_FLAGS)
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: device %u ('%s') has unknown flags 0x%x", i,
                               device->type, (unsigned)device->flags);
    }
    for (uint32_t i = 0; i < facts->input_count; i++)
        if (facts->inputs[i].flags & ~RULES_INPUT_FLAGS)
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: input %u has unknown flags 0x%x", i,
                               (unsigned)facts->inputs[i].flags);
    for (uint32_t i = 0; i < facts->operator_count; i++) {
        const rondo_gate_operator *candidate = &facts->operators[i];
        if (!candidate->name || (candidate->tags & ~(uint32_t)RONDO_GATE_TAG_ALL))
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: operator %u has %s", i,
                               candidate->name ? "an unknown tag" : "no name");
    }
    return RONDO_OK;
}

rondo_status rondo__gate_check_facts(const rondo_gate_facts *facts) {
    if (facts->flags & ~RULES_FLAGS)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: unknown flags 0x%x", (unsigned)facts->flags);
    if (facts->only & ~(((uint64_t)1 << RONDO_GATE_COUNT) - 2u))
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: only 0x%llx names a gate that does not exist",
                           (unsigned long long)facts->only);
    if (facts->mode < RONDO_TREE_INFERENCE || facts->mode > RONDO_TREE_BACKWARD ||
        facts->forward < RONDO_GATE_ANNOTATION_NONE || facts->forward > RONDO_GATE_ANNOTATION_OFF ||
        facts->backward < RONDO_GATE_ANNOTATION_NONE || facts->backward > RONDO_GATE_ANNOTATION_OFF)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gate_facts: unknown mode %d or annotation %d, %d",
                           (int)facts->mode, (int)facts->forward, (int)facts->backward);
    return rules_check_arrays(facts);
}

static bool rules_is_host(const rondo_gate_device *device) {
    return !strcmp(device->type, "cpu") && !device->ops && !(device->flags & RONDO_GATE_DEVICE_CAPABLE);
}

/* Distinct devices that matter, and the host. */
static void rules_sort_devices(rondo__gate_question *question) {
    const rondo_gate_facts *facts = question->facts;
    for (uint32_t i = 0; i < facts->device_count; i++) {
        const rondo_gate_device *device = &facts->devices[i];
        if (!strcmp(device->type, "meta")) continue;
        if (rules_is_host(device)) {
            if (!question->host) question->host = i + 1u;
            continue;
        }
        uint32_t at = 0;
        while (at < question->device_count && (question->devices[at]->index != device->index ||
                                               strcmp(question->devices[at]->type, device->type) != 0))
            at++;
        if (at == question->device_count && at < RONDO__GATE_DEVICES_MAX) {
            question->devices[at] = device;
            question->device_count++;
        }
    }
}

/* What one device says of itself. */
static rondo_status rules_ask(const rondo_gate_device *device, bool *out_capable, bool *out_cached) {
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
    *out_capable = (device->flags & RONDO_GATE_DEVICE_CAPABLE) != 0;
    *out_cached = (device->flags & RONDO_GATE_DEVICE_UNCACHED) == 0;
    if (device->ops) {
        RONDO__TRY_NOTE(rondo__sized_read(RONDO_LAYER_TREE, "rondo_graph_ops", device->ops, &ops, sizeof ops),
                        "of device '%s'", device->type);
        *out_capable = ops.is_graph_capture_supported && ops.is_graph_capture_supported(ops.user);
        *out_cached = !ops.caching_allocator_enabled || ops.caching_allocator_enabled(ops.user);
    }
    if (device->flags & RONDO_GATE_DEVICE_UNAVAILABLE) *out_cached = true;
    return RONDO_OK;
}

rondo_status rondo__gate_ask_devices(rondo__gate_question *question) {
    rules_sort_devices(question);
    question->cached = true;
    for (uint32_t i = 0; i < question->device_count; i++) {
        const rondo_gate_device *device = question->devices[i];
        bool capable = false, cached = true;
        RONDO__TRY(rules_ask(device, &capable, &cached));
        if (!i) question->capable = capable;
        if (!cached && question->cached) {
            question->cached = false;
            question->uncached = (uint32_t)(device - question->facts->devices);
        }
    }
    if (question->device_count == 1 && !question->devices[0]->ops) {
        rondo__mutex_lock(&question->gates->mutex);
        question->own_path = rondo__gate_own_path(question->gates, question->devices[0]->type);
        rondo__mutex_unlock(&question->gates->mutex);
    }
    return RONDO_OK;
}
