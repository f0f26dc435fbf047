/* SPDX-License-Identifier: Apache-2.0 */
#include "wav.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t little(const uint8_t *p, int bytes) { return bytes ? *p | little(p + 1, bytes - 1) << 8 : 0; }

/* Every third sample behind a low pass: a sinc of 97 taps under a Hamming window, cut off at 0.9 of 8 kHz. */
static void decimate(const uint8_t *pcm, size_t count, float *out) {
    double taps[97], sum = 0, pi = 3.14159265358979323846;
    for (int i = 0; i < 97; ++i) {
        double t = (i - 48) * 0.3 * pi;
        sum += taps[i] = (i == 48 ? 1 : sin(t) / t) * (0.54 - 0.46 * cos(2 * pi * i / 96));
    }
    for (size_t o = 0; 3 * o < count; ++o) {
        double value = 0;
        for (size_t i = 3 * o < 48 ? 48 - 3 * o : 0; i < 97 && 3 * o + i - 48 < count; ++i)
            value += taps[i] * (int16_t)little(pcm + 2 * (3 * o + i - 48), 2) / 32768;
        out[o] = (float)(value / sum);
    }
}

const char *wav_append(const char *path, float **samples, size_t *count) {
    static uint8_t data[16 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) return "cannot be opened";
    size_t size = fread(data, 1, sizeof data, file), length;
    fclose(file);
    if (size < 44 || memcmp(data, "RIFF", 4) || memcmp(data + 8, "WAVEfmt ", 8)) return "not a WAV file";
    if (little(data + 22, 2) != 1 || little(data + 24, 4) != 48000 || little(data + 34, 2) != 16)
        return "not of one channel, 48 kHz and 16 bits";
    for (size_t at = 12; size - at >= 8; at += 8 + length) { /* chunk after chunk: name, length, bytes */
        length = little(data + at + 4, 4);
        if (length > size - at - 8) return "truncated";
        if (memcmp(data + at, "data", 4)) continue;
        float *grown = realloc(*samples, (*count + length / 6 + 1) * sizeof **samples);
        if (!grown) return "too large";
        decimate(data + at + 8, length / 2, grown + *count);
        *samples = grown;
        *count += (length / 2 + 2) / 3;
        return NULL;
    }
    return "without samples";
}
