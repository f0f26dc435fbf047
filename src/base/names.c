/* SPDX-License-Identifier: Apache-2.0
 *
 * The words for codes and layers, from the same lists as their numbers. */
#include <rondo/types.h>

typedef struct names_code {
    const char *name, *advice;
} names_code;

static const names_code names_codes[RONDO_CODE_COUNT] = {
#define RONDO_X(name, number, text, advice) [number] = {text, advice},
    RONDO_CODES(RONDO_X)
#undef RONDO_X
};

static const char *const names_layers[RONDO_LAYER_COUNT] = {
#define RONDO_X(name, number, text) [number] = text,
    RONDO_LAYERS(RONDO_X)
#undef RONDO_X
};

const char *rondo_code_name(rondo_code code) {
    return code >= 0 && code < RONDO_CODE_COUNT ? names_codes[code].name : "unknown";
}

const char *rondo_code_advice(rondo_code code) {
    return code >= 0 && code < RONDO_CODE_COUNT ? names_codes[code].advice : "unknown";
}

const char *rondo_layer_name(rondo_layer layer) {
    return layer >= 0 && layer < RONDO_LAYER_COUNT ? names_layers[layer] : "unknown";
}
