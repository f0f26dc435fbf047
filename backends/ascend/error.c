/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's error numbers as codes: what the caller should do next. The number and the driver's words go along. */
#include <stdio.h>
#include <string.h>

#include "ascend.h"

static const struct {
    int error;
    rondo_code code;
    rondo_layer layer;
} error_table[] = {{100000, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {100001, RONDO_CODE_INVALID_STATE, RONDO_LAYER_DRIVER},
                   {107000, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {107001, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {107002, RONDO_CODE_INVALID_STATE, RONDO_LAYER_DRIVER},
                   {107003, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {107004, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {107005, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {107017, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_DRIVER},
                   {107019, RONDO_CODE_BUSY, RONDO_LAYER_DRIVER},
                   {107020, RONDO_CODE_BUSY, RONDO_LAYER_DRIVER},
                   {107023, RONDO_CODE_ABORTED, RONDO_LAYER_DRIVER},
                   {107024, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107025, RONDO_CODE_CAPTURE_UNJOINED, RONDO_LAYER_CAPTURE},
                   {107026, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107027, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107028, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107029, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107030, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107031, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107032, RONDO_CODE_CAPTURE_MERGED, RONDO_LAYER_CAPTURE},
                   {107033, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107034, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107036, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107037, RONDO_CODE_BUSY, RONDO_LAYER_CAPTURE},
                   {107038, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107040, RONDO_CODE_BUSY, RONDO_LAYER_CAPTURE},
                   {107041, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {107045, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {200000, RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_DRIVER},
                   {200001, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_DRIVER},
                   {200006, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_DRIVER},
                   {207000, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_DRIVER},
                   {207001, RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_MEMORY},
                   {207004, RONDO_CODE_UNAVAILABLE, RONDO_LAYER_DRIVER},
                   {207005, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207007, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207008, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207009, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207010, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207012, RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_DRIVER},
                   {207018, RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_MEMORY},
                   {507009, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_CAPTURE},
                   {507011, RONDO_CODE_INVALID_STATE, RONDO_LAYER_CAPTURE},
                   {507012, RONDO_CODE_BUSY, RONDO_LAYER_DRIVER},
                   {507014, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507015, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507017, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507018, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507027, RONDO_CODE_NOT_FOUND, RONDO_LAYER_KERNEL},
                   {507034, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507035, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL},
                   {507046, RONDO_CODE_BUSY, RONDO_LAYER_DRIVER},
                   {507047, RONDO_CODE_BUSY, RONDO_LAYER_DRIVER},
                   {507053, RONDO_CODE_DEVICE_LOST, RONDO_LAYER_DRIVER},
                   {507899, RONDO_CODE_DEVICE_LOST, RONDO_LAYER_DRIVER},
                   {507903, RONDO_CODE_CAPTURE_INVALIDATED, RONDO_LAYER_CAPTURE}};
enum { ERROR_COUNT = sizeof error_table / sizeof error_table[0] };

rondo_code rondo__ascend_code(int error) {
    for (int i = 0; i < ERROR_COUNT; i++)
        if (error_table[i].error == error) return error_table[i].code;
    /* Of 2070xx the others are each of something that there is not enough of. */
    if (error / 100 == 2070) return RONDO_CODE_OUT_OF_RANGE;
    return error ? RONDO_CODE_INTERNAL : RONDO_CODE_OK;
}

static rondo_layer error_layer(int error) {
    for (int i = 0; i < ERROR_COUNT; i++)
        if (error_table[i].error == error) return error_table[i].layer;
    return RONDO_LAYER_DRIVER;
}

/* "... (error 107002)": the driver's number that a text ends in; 0: none. */
static int error_at_end(const char *text, int length) {
    enum { DIGITS = 6 };
    static const int groups[] = {100, 107, 145, 148, 200, 207, 245, 300, 500, 507, 545};
    int number = 0;
    while (length && (text[length - 1] < '0' || text[length - 1] > '9')) {
        if (!strchr(")]}. \t", text[--length])) return 0;
    }
    if (length < DIGITS || (length > DIGITS && text[length - DIGITS - 1] >= '0' && text[length - DIGITS - 1] <= '9'))
        return 0;
    for (const char *digit = text + length - DIGITS; digit < text + length; digit++) {
        if (*digit < '0' || *digit > '9') return 0;
        number = number * 10 + (*digit - '0');
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (number / 1000 == groups[i]) return number;
    return 0;
}

/* The newest message comes first. One that names another number is of another failure, which nobody took. */
void rondo__ascend_words(const rondo__ascend_library *library, int error, char *text, size_t capacity) {
    const char *all = library->api.aclGetRecentErrMsg();
    const char *reason = all ? strstr(all, "Reason: ") : NULL;
    /* Of the newest message, which is the first line. */
    if (reason && (size_t)(reason - all) > strcspn(all, "\n")) reason = NULL;
    reason = reason ? reason + strlen("Reason: ") : all;
    int length = reason ? (int)strcspn(reason, "\n") : 0, other = error_at_end(reason, length);
    if (!length || (other && other != error)) (void)snprintf(text, capacity, "the driver gives no reason");
    else (void)snprintf(text, capacity, "%.*s", length, reason);
}

int rondo__ascend_tolerate(const rondo__ascend_library *library, int error) {
    if (error) (void)library->api.aclGetRecentErrMsg();
    return error;
}

rondo_status rondo__ascend_error_as(const rondo__ascend_library *library, rondo_code code, const char *call,
                                    int error) {
    char words[RONDO__ASCEND_TEXT];
    if (!error) return RONDO_OK;
    rondo__ascend_words(library, error, words, sizeof words);
    return library->host->status_make(code, error_layer(error), __FILE__, (int32_t)__LINE__, "%s: %s [%d]", call, words,
                                      error);
}

rondo_status rondo__ascend_error(const rondo__ascend_library *library, const char *call, int error) {
    return rondo__ascend_error_as(library, rondo__ascend_code(error), call, error);
}
