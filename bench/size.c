/* SPDX-License-Identifier: Apache-2.0
 *
 * How large the library is when it is stripped. */
#include <elf.h>
#include <math.h>
#include <string.h>

#include "bench.h"

/* The end of the last loaded segment in the file: what `strip` leaves, but for a few hundred bytes of headers. */
static double loaded_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    Elf64_Ehdr header;
    double end = 0;
    if (!file) return (double)NAN;
    if (fread(&header, sizeof header, 1, file) != 1 || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64) {
        fclose(file);
        return (double)NAN;
    }
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (fseek(file, (long)(header.e_phoff + i * header.e_phentsize), SEEK_SET) != 0 ||
            fread(&segment, sizeof segment, 1, file) != 1)
            break;
        if (segment.p_type == PT_LOAD && (double)(segment.p_offset + segment.p_filesz) > end)
            end = (double)(segment.p_offset + segment.p_filesz);
    }
    fclose(file);
    return end;
}

void bench_size(const bench_setup *setup, bench_report *report) {
    if (!setup->library || !bench_wants(report, "size_library")) return;
    bench_row row = {.name = "size_library",
                     .value = loaded_bytes(setup->library) / 1000,
                     .unit = "kB",
                     .ratio = (double)NAN,
                     .bar = 2000};
    snprintf(row.note, sizeof row.note, "librondo.so stripped: runtime, compiler and all kernels");
    bench_add(report, &row);
}
