/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs whose first word is their size as the caller knows it. */
#include "base/sized.h"

#include <string.h>

static uint32_t sized_of(const void *given) {
    uint32_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

/* rondo_graph_options is started from RONDO_GRAPH_OPTIONS_INIT: every such struct names its macro so. */
static rondo_status sized_refuse(rondo_layer layer, const char *what, const char *why) {
    char macro[64];
    size_t length = 0;
    for (; what[length] && length + 1 < sizeof macro; length++) {
        const char c = what[length];
        macro[length] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    macro[length] = '\0';
    return rondo__status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__, "%s: %s: start from %s_INIT",
                              what, why, macro);
}

rondo_status rondo__sized_check(rondo_layer layer, const char *what, const void *given) {
    if (!given) return sized_refuse(layer, what, "it is null");
    if (sized_of(given) < sizeof(uint32_t)) return sized_refuse(layer, what, "its struct_size is not set");
    return RONDO_OK;
}

rondo_status rondo__sized_read(rondo_layer layer, const char *what, const void *given, void *own, uint32_t size) {
    if (!given) return RONDO_OK;
    RONDO__TRY(rondo__sized_check(layer, what, given));
    memcpy(own, given, sized_of(given) < size ? sized_of(given) : size);
    memcpy(own, &size, sizeof size);
    return RONDO_OK;
}

void rondo__sized_write(const void *own, uint32_t size, void *out) {
    const uint32_t known = sized_of(out);
    memcpy(out, own, known < size ? known : size);
    memcpy(out, &known, sizeof known);
}
