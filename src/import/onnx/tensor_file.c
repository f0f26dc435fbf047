/* SPDX-License-Identifier: Apache-2.0
 *
 * A file with one TensorProto, as ONNX's own tests keep their inputs and outputs. */
#include <string.h>

#include "base/instance.h"
#include "import/onnx/onnx.h"

static rondo_status tensor_file_read(rondo_instance *instance, rondo__onnx_context *context,
                                     const rondo__import_file *file, rondo_tensor **out_tensor) {
    rondo__pb_reader reader;
    rondo__onnx_tensor tensor;
    rondo__pb_budget_init(&context->budget, file->data);
    rondo__pb_reader_init(&reader, file->data, file->size, &context->budget);
    RONDO__TRY(rondo__onnx_tensor_read(context, &reader, &tensor));
    if (!rondo_dtype_bits(tensor.dtype))
        return RONDO__FAIL(UNSUPPORTED, FILE, "a tensor of type %s", rondo_dtype_name(tensor.dtype));
    rondo_tensor *made = NULL;
    RONDO__TRY(rondo_tensor_create(instance, tensor.dtype, tensor.rank, tensor.dims, &made));
    rondo_status status =
        rondo__onnx_tensor_fill(context, &tensor, &context->scratch, rondo_tensor_get_view(made)->data);
    if (status) {
        rondo_tensor_release(made);
        return status;
    }
    *out_tensor = made;
    return RONDO_OK;
}

rondo_status rondo_tensor_read_onnx(rondo_instance *instance, const char *path, rondo_tensor **out_tensor) {
    if (!instance || !path || !out_tensor)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "reading a tensor needs an instance, a path and a place for it");
    *out_tensor = NULL;
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&base->allocator, sizeof(rondo__onnx_context), &memory));
    rondo__onnx_context *context = memory;
    context->allocator = base->allocator;
    rondo__arena_init(&context->scratch, &base->allocator, SIZE_MAX / 4);
    rondo__onnx_store_init(&context->store, &base->allocator, NULL, NULL); /* external data is refused */
    rondo__import_file file;
    rondo_status status = rondo__import_file_read(&base->allocator, path, RONDO__IMPORT_FILE_MAX, &file);
    if (!status) {
        status = rondo__import_within(tensor_file_read(instance, context, &file, out_tensor), "'%.300s'", path);
        rondo__import_file_release(&file);
    }
    rondo__onnx_store_deinit(&context->store);
    rondo__arena_deinit(&context->scratch);
    rondo__free(&base->allocator, context, sizeof *context);
    return status;
}
