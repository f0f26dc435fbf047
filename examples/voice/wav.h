/* SPDX-License-Identifier: Apache-2.0
 * Appends a 48 kHz WAV file of 16 bits and one channel at 16 kHz; *samples is malloc's. Null, or what is wrong. */
#include <stddef.h>
const char *wav_append(const char *path, float **samples, size_t *count);
