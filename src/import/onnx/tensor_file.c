/* SPDX-License-Identifier: Apache-2.0
 *
 * A file with one TensorProto, SequenceProto or OptionalProto, as ONNX's own tests keep their inputs and outputs. */
#include <rondo/value.h>
#include <string.h>

#include "base/buffer.h"
#include "base/instance.h"
#include "import/onnx/onnx.h"

#define VALUE_FILE_TENSORS_MAX (1u << 24)

/* One file that is being read. */
typedef struct value_file {
    rondo_instance *instance;
    rondo__onnx_context *context;
    rondo_value_kind kind;
    rondo_tensor *tensor; /* made when it is one; its own */
    rondo_value *value;   /* else */
} value_file;

static rondo_status value_file_tensor(const value_file *f, const rondo__pb_reader *reader, rondo_tensor **out_tensor) {
    rondo__pb_reader walk = *reader;
    rondo__onnx_tensor tensor;
    RONDO__TRY(rondo__onnx_tensor_read(f->context, &walk, &tensor));
    if (!rondo_dtype_bits(tensor.dtype))
        return RONDO__FAIL(UNSUPPORTED, FILE, "a tensor of type %s", rondo_dtype_name(tensor.dtype));
    rondo_tensor *made = NULL;
    RONDO__TRY(rondo_tensor_create(f->instance, tensor.dtype, tensor.rank, tensor.dims, &made));
    rondo_status status =
        rondo__onnx_tensor_fill(f->context, &tensor, &f->context->scratch, rondo_tensor_get_view(made)->data);
    if (status) {
        rondo_tensor_release(made);
        return status;
    }
    *out_tensor = made;
    return RONDO_OK;
}

static rondo_status value_file_tensor_value(const value_file *f, const rondo__pb_reader *reader,
                                            rondo_value **out_value) {
    rondo_tensor *tensor = NULL;
    RONDO__TRY(value_file_tensor(f, reader, &tensor));
    rondo_status status = rondo_value_from_tensor(f->instance, rondo_tensor_get_view(tensor), out_value);
    rondo_tensor_release(tensor);
    return status;
}

/* A message inside, as a reader of its own. */
static rondo_status value_file_inside(rondo__pb_reader *reader, const rondo__pb_field *field,
                                      rondo__pb_reader *out_inner) {
    rondo__pb_bytes message;
    RONDO__TRY(rondo__pb_get_bytes(reader, field, &message));
    return rondo__pb_enter_bytes(reader, message, out_inner);
}

static rondo_status value_file_items(const value_file *f, rondo__pb_reader *reader, rondo__buffer *items) {
    rondo__pb_field field;
    int32_t type = 0;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 2) RONDO__TRY(rondo__pb_int32(reader, &field, &type));
        if (field.number > 3) return RONDO__FAIL(UNSUPPORTED, FILE, "a sequence of something else than tensors");
        if (field.number != 3) continue;
        rondo__pb_reader inner;
        rondo_value *item = NULL;
        RONDO__TRY(rondo__buffer_reserve(items, items->count + 1));
        RONDO__TRY(value_file_inside(reader, &field, &inner));
        RONDO__TRY(value_file_tensor_value(f, &inner, &item));
        RONDO__IGNORE(rondo__buffer_append(items, &item, 1)); /* room was made above */
    }
    RONDO__TRY(rondo__pb_end(reader));
    return type == 0 || type == 1 ? RONDO_OK
                                  : RONDO__FAIL(UNSUPPORTED, FILE, "a sequence of something else than tensors");
}

static rondo_status value_file_sequence(const value_file *f, const rondo__pb_reader *reader, rondo_value **out_value) {
    rondo__pb_reader walk = *reader;
    rondo__buffer items;
    rondo__buffer_init(&items, &f->context->allocator, sizeof(rondo_value *), VALUE_FILE_TENSORS_MAX);
    rondo_status status = value_file_items(f, &walk, &items);
    if (!status) {
        status =
            rondo_value_from_sequence(f->instance, RONDO_DTYPE_UNDEFINED, items.data, (uint32_t)items.count, out_value);
    }
    for (size_t i = 0; i < items.count; i++) rondo_value_release(*RONDO__BUFFER_AT(&items, rondo_value *, i));
    rondo__buffer_deinit(&items);
    return status;
}

static rondo_status value_file_element(const value_file *f, rondo__pb_reader *reader, rondo_value **element) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number < 3) continue;
        if (field.number != 3 && field.number != 5)
            return RONDO__FAIL(UNSUPPORTED, FILE, "an optional of something else than a tensor or a sequence");
        if (*element) return RONDO__FAIL(CORRUPT, FILE, "an optional that holds two things");
        rondo__pb_reader inner;
        RONDO__TRY(value_file_inside(reader, &field, &inner));
        if (field.number == 3) RONDO__TRY(value_file_tensor_value(f, &inner, element));
        else RONDO__TRY(value_file_sequence(f, &inner, element));
    }
    return rondo__pb_end(reader);
}

static rondo_status value_file_optional(const value_file *f, const rondo__pb_reader *reader, rondo_value **out_value) {
    rondo__pb_reader walk = *reader;
    rondo_value *element = NULL;
    rondo_status status = value_file_element(f, &walk, &element);
    if (!status) status = rondo_value_from_optional(f->instance, element, out_value);
    rondo_value_release(element);
    return status;
}

static rondo_status value_file_parse(value_file *f, const rondo__import_file *file) {
    rondo__pb_reader reader;
    rondo__pb_budget_init(&f->context->budget, file->data);
    rondo__pb_reader_init(&reader, file->data, file->size, &f->context->budget);
    switch (f->kind) {
    case RONDO_VALUE_TENSOR: return value_file_tensor(f, &reader, &f->tensor);
    case RONDO_VALUE_SEQUENCE: return value_file_sequence(f, &reader, &f->value);
    case RONDO_VALUE_OPTIONAL: return value_file_optional(f, &reader, &f->value);
    default: return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "there is no kind %d of value", f->kind);
    }
}

static rondo_status value_file_read(value_file *f, const char *path) {
    const rondo__instance_base *base = rondo__instance_base_of(f->instance);
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&base->allocator, sizeof(rondo__onnx_context), &memory));
    rondo__onnx_context *context = f->context = memory;
    context->allocator = base->allocator;
    rondo__arena_init(&context->scratch, &base->allocator, SIZE_MAX / 4);
    rondo__onnx_store_init(&context->store, &base->allocator, NULL, NULL); /* external data is refused */
    rondo__import_file file;
    rondo_status status = rondo__import_file_read(&base->allocator, path, RONDO__IMPORT_FILE_MAX, &file);
    if (!status) {
        status = rondo__import_within(value_file_parse(f, &file), "'%.300s'", path);
        rondo__import_file_release(&file);
    }
    rondo__onnx_store_deinit(&context->store);
    rondo__arena_deinit(&context->scratch);
    rondo__free(&base->allocator, context, sizeof *context);
    return status;
}

rondo_status rondo_tensor_read_onnx(rondo_instance *instance, const char *path, rondo_tensor **out_tensor) {
    if (!instance || !path || !out_tensor)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "reading a tensor needs an instance, a path and a place for it");
    value_file f = {.instance = instance, .kind = RONDO_VALUE_TENSOR};
    rondo_status status = value_file_read(&f, path);
    *out_tensor = f.tensor;
    return status;
}

rondo_status rondo_value_read_onnx(rondo_instance *instance, const char *path, rondo_value_kind kind,
                                   rondo_value **out_value) {
    if (!instance || !path || !out_value)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "reading a value needs an instance, a path and a place for it");
    value_file f = {.instance = instance, .kind = kind};
    rondo_status status = value_file_read(&f, path);
    *out_value = f.value;
    if (f.tensor) {
        status = rondo_value_from_tensor(instance, rondo_tensor_get_view(f.tensor), out_value);
        rondo_tensor_release(f.tensor);
    }
    return status;
}
