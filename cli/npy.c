/* SPDX-License-Identifier: Apache-2.0
 *
 * numpy's array files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static const struct {
    const char *descr;
    rondo_dtype dtype;
} npy_types[] = {{"<f4", RONDO_DTYPE_F32},  {"<f8", RONDO_DTYPE_F64},  {"<f2", RONDO_DTYPE_F16},
                 {"|b1", RONDO_DTYPE_BOOL}, {"|i1", RONDO_DTYPE_I8},   {"<i2", RONDO_DTYPE_I16},
                 {"<i4", RONDO_DTYPE_I32},  {"<i8", RONDO_DTYPE_I64},  {"|u1", RONDO_DTYPE_U8},
                 {"<u2", RONDO_DTYPE_U16},  {"<u4", RONDO_DTYPE_U32},  {"<u8", RONDO_DTYPE_U64},
                 {"<c8", RONDO_DTYPE_C64},  {"<c16", RONDO_DTYPE_C128}};

/* What the header's dictionary says. */
typedef struct npy_header {
    rondo_dtype dtype;
    bool fortran;
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    size_t data_offset;
} npy_header;

static const char *after_key(const char *text, const char *key) {
    const char *found = strstr(text, key);
    if (!found) return NULL;
    found += strlen(key);
    while (*found == ' ') ++found;
    if (*found != ':') return NULL;
    ++found;
    while (*found == ' ') ++found;
    return found;
}

static const char *parse_shape(const char *text, npy_header *header) {
    if (*text++ != '(') return "its shape is not a tuple";
    header->rank = 0;
    for (;;) {
        while (*text == ' ' || *text == ',') ++text;
        if (*text == ')') return NULL;
        char *end;
        errno = 0;
        long long size = strtoll(text, &end, 10);
        if (end == text || errno || size < 0) return "its shape is not a tuple of sizes";
        if (*end == 'L') ++end;
        if (*end != ',' && *end != ')' && *end != ' ') return "its shape is not a tuple of sizes";
        if (header->rank == RONDO_RANK_MAX) return "it has more than 16 dimensions";
        header->dims[header->rank++] = size;
        text = end;
    }
}

static const char *parse_header(char *text, npy_header *header) {
    const char *descr = after_key(text, "'descr'");
    if (!descr || (*descr != '\'' && *descr != '"')) return "its header names no simple type (descr)";
    header->dtype = RONDO_DTYPE_UNDEFINED;
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; ++i) {
        size_t length = strlen(npy_types[i].descr);
        if (strncmp(descr + 1, npy_types[i].descr, length) == 0 && descr[1 + length] == *descr)
            header->dtype = npy_types[i].dtype;
    }
    if (header->dtype == RONDO_DTYPE_UNDEFINED)
        return "its type is none of bool, int, uint, float and complex, little endian";
    const char *order = after_key(text, "'fortran_order'");
    if (!order || (strncmp(order, "True", 4) != 0 && strncmp(order, "False", 5) != 0))
        return "its header has no fortran_order";
    header->fortran = *order == 'T';
    const char *shape = after_key(text, "'shape'");
    return shape ? parse_shape(shape, header) : "its header has no shape";
}

static const char *parse(uint8_t *bytes, size_t size, npy_header *header) {
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) return "it is not an npy file";
    size_t length, start;
    if (bytes[6] == 1) {
        length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
        start = 10;
    } else if (bytes[6] == 2 || bytes[6] == 3) {
        if (size < 12) return "it is truncated";
        length = (size_t)bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        start = 12;
    } else {
        return "its npy version is not 1, 2 or 3";
    }
    if (length == 0 || length > size - start) return "it is truncated in its header";
    char *text = cli_allocate(length + 1, 1);
    memcpy(text, bytes + start, length);
    const char *why = parse_header(text, header);
    free(text);
    header->data_offset = start + length;
    return why;
}

/* Element `index` of the row-major order lies at this place of the Fortran order. */
static uint64_t fortran_place(const npy_header *header, uint64_t index) {
    uint64_t place = 0;
    uint64_t stride[RONDO_RANK_MAX], step = 1;
    for (int32_t d = 0; d < header->rank; ++d) {
        stride[d] = step;
        step *= (uint64_t)header->dims[d];
    }
    for (int32_t d = header->rank - 1; d >= 0; --d) {
        place += index % (uint64_t)header->dims[d] * stride[d];
        index /= (uint64_t)header->dims[d];
    }
    return place;
}

/* Opened without waiting, so that a pipe nobody writes to is refused like any other thing that is no file. */
static int read_file(const char *path, uint8_t **out_bytes, size_t *out_size) {
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
    struct stat info;
    FILE *file = NULL;
    int code = CLI_DONE;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || !(file = fdopen(descriptor, "rb"))) {
        code = cli_fail(CLI_BAD_DATA, "%s: not a regular file", path);
        close(descriptor);
        return code;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *bytes = cli_allocate(size, 1);
    if (fread(bytes, 1, size, file) != size) {
        code = cli_fail(CLI_BAD_DATA, "%s: cannot be read to its end", path);
        free(bytes);
    } else {
        *out_bytes = bytes;
        *out_size = size;
    }
    fclose(file);
    return code;
}

int cli_npy_read(rondo_instance *instance, const char *path, rondo_tensor **out_tensor) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    int code = read_file(path, &bytes, &size);
    if (code != CLI_DONE) return code;
    npy_header header = {0};
    const char *why = parse(bytes, size, &header);
    rondo_tensor *tensor = NULL;
    rondo_status status = NULL;
    if (!why) {
        /* A claim larger than the file is refused before anything of that size is allocated. */
        uint64_t elements = 1;
        for (int32_t d = 0; d < header.rank; ++d)
            if (header.dims[d] && __builtin_mul_overflow(elements, (uint64_t)header.dims[d], &elements))
                why = "its shape is too large";
        for (int32_t d = 0; d < header.rank; ++d)
            if (!header.dims[d]) elements = 0;
        uint64_t width = rondo_dtype_bits(header.dtype) / 8u, need;
        if (!why && (__builtin_mul_overflow(elements, width, &need) || need != size - header.data_offset))
            why = "its shape and its number of bytes do not fit";
        if (!why) status = rondo_tensor_create(instance, header.dtype, header.rank, header.dims, &tensor);
        if (!why && !status) {
            uint8_t *data = rondo_tensor_get_view(tensor)->data;
            if (!header.fortran) {
                if (need) memcpy(data, bytes + header.data_offset, need);
            } else {
                for (uint64_t i = 0; i < elements; ++i)
                    memcpy(data + i * width, bytes + header.data_offset + fortran_place(&header, i) * width, width);
            }
        }
    }
    free(bytes);
    if (why) return cli_fail(CLI_BAD_DATA, "%s: %s", path, why);
    if (status) return cli_report(status);
    *out_tensor = tensor;
    return CLI_DONE;
}

int cli_npy_write(const char *path, const rondo_tensor_view *tensor) {
    const char *descr = NULL;
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; ++i)
        if (npy_types[i].dtype == tensor->dtype) descr = npy_types[i].descr;
    if (!descr)
        return cli_fail(CLI_UNSUPPORTED, "unsupported: npy has no type for %s", rondo_dtype_name(tensor->dtype));
    char text[512];
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    uint64_t bytes = rondo_dtype_bits(tensor->dtype) / 8u;
    for (int32_t d = 0; d < tensor->rank; ++d) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%lld%s", (long long)tensor->shape[d],
                           d + 1 < tensor->rank ? ", "
                           : tensor->rank == 1  ? ","
                                                : "");
        bytes *= (uint64_t)tensor->shape[d];
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    while ((length + 11) % 64 != 0) text[length++] = ' ';
    text[length++] = '\n';
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(length & 255), (uint8_t)(length >> 8)};
    FILE *file = fopen(path, "wb");
    if (!file) return cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
    bool good = fwrite(head, 1, sizeof head, file) == sizeof head &&
                fwrite(text, 1, (size_t)length, file) == (size_t)length &&
                fwrite((const char *)tensor->data + tensor->byte_offset, 1, bytes, file) == bytes;
    good = (fclose(file) == 0) && good;
    return good ? CLI_DONE : cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
}
