/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a data symbol out of a shared library's file, so that it can be judged before any of its code runs: dlopen
 * would call its constructors. The file is not trusted: every offset is checked by reading at it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "ops/operators.h"

#define ELF_SECTIONS_MAX 65536u
#define ELF_SYMBOLS_MAX (UINT64_C(1) << 22)
#define ELF_SYMBOLS_AT_ONCE 256u
#define ELF_NAME_MAX 64u

typedef struct elf_file {
    int descriptor;
    Elf64_Ehdr header;
} elf_file;

/* False past the end, and for offsets that no file has. */
static bool elf_at(const elf_file *file, uint64_t offset, void *out, size_t size) {
    size_t done = 0;
    if (offset > INT64_MAX - size) return false;
    while (done < size) {
        ssize_t got = pread(file->descriptor, (char *)out + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static bool elf_item(const elf_file *file, uint64_t table, uint64_t index, void *out, size_t size) {
    uint64_t offset;
    return rondo__checked_mul_u64(index, size, &offset) && rondo__checked_add_u64(table, offset, &offset) &&
           elf_at(file, offset, out, size);
}

static bool elf_header(elf_file *file) {
    uint16_t one = 1;
    unsigned char order = *(unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    Elf64_Ehdr *h = &file->header;
    return elf_at(file, 0, h, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == order && h->e_type == ET_DYN &&
           h->e_shentsize == sizeof(Elf64_Shdr) && h->e_phentsize == sizeof(Elf64_Phdr);
}

/* Where the bytes of an address lie in the file: those that the loader fills from it. */
static bool elf_place(const elf_file *file, uint64_t address, uint64_t size, uint64_t *out_offset) {
    for (uint32_t i = 0; i < file->header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!elf_item(file, file->header.e_phoff, i, &segment, sizeof segment)) return false;
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
        uint64_t inside = address - segment.p_vaddr;
        if (inside > segment.p_filesz || size > segment.p_filesz - inside) continue;
        return rondo__checked_add_u64(segment.p_offset, inside, out_offset);
    }
    return false;
}

static bool elf_is_named(const elf_file *file, const Elf64_Shdr *strings, const Elf64_Sym *symbol, const char *name) {
    char text[ELF_NAME_MAX];
    size_t size = strlen(name) + 1u;
    uint64_t offset;
    return size <= sizeof text && rondo__checked_add_u64(strings->sh_offset, symbol->st_name, &offset) &&
           elf_at(file, offset, text, size) && memcmp(text, name, size) == 0;
}

/* Of a table of exported symbols. */
static bool elf_search(const elf_file *file, const Elf64_Shdr *symbols, const Elf64_Shdr *strings, const char *name,
                       size_t size, Elf64_Sym *out_symbol) {
    uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    Elf64_Sym some[ELF_SYMBOLS_AT_ONCE];
    if (count > ELF_SYMBOLS_MAX) return false;
    for (uint64_t at = 0; at < count; at += ELF_SYMBOLS_AT_ONCE) {
        uint64_t now = count - at < ELF_SYMBOLS_AT_ONCE ? count - at : ELF_SYMBOLS_AT_ONCE;
        uint64_t offset;
        if (!rondo__checked_add_u64(symbols->sh_offset, at * sizeof *some, &offset) ||
            !elf_at(file, offset, some, (size_t)now * sizeof *some))
            return false;
        for (uint64_t i = 0; i < now; i++) {
            if (some[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(some[i].st_info) != STT_OBJECT || some[i].st_size < size)
                continue;
            if (!elf_is_named(file, strings, &some[i], name)) continue;
            *out_symbol = some[i];
            return true;
        }
    }
    return false;
}

static bool elf_find(const elf_file *file, const char *name, size_t size, Elf64_Sym *out_symbol) {
    for (uint32_t i = 0; i < file->header.e_shnum && i < ELF_SECTIONS_MAX; i++) {
        Elf64_Shdr symbols, strings;
        if (!elf_item(file, file->header.e_shoff, i, &symbols, sizeof symbols)) return false;
        if (symbols.sh_type != SHT_DYNSYM || symbols.sh_entsize != sizeof(Elf64_Sym)) continue;
        return symbols.sh_link < file->header.e_shnum &&
               elf_item(file, file->header.e_shoff, symbols.sh_link, &strings, sizeof strings) &&
               elf_search(file, &symbols, &strings, name, size, out_symbol);
    }
    return false;
}

rondo_status rondo__elf_read(const char *path, const char *symbol, void *out, size_t size) {
    elf_file file = {.descriptor = open(path, O_RDONLY | O_CLOEXEC)};
    Elf64_Sym found;
    uint64_t offset = 0;
    rondo_status status = RONDO_OK;
    if (file.descriptor < 0) return RONDO__FAIL(NOT_FOUND, LOADING, "'%s': %s", path, strerror(errno));
    if (!elf_header(&file)) {
        status = RONDO__FAIL(CORRUPT, LOADING, "'%s': it is no shared library for this machine", path);
    } else if (!elf_find(&file, symbol, size, &found)) {
        status = RONDO__FAIL(NOT_FOUND, LOADING, "'%s': it does not export '%s'", path, symbol);
    } else if (!elf_place(&file, found.st_value, size, &offset) || !elf_at(&file, offset, out, size)) {
        status = RONDO__FAIL(CORRUPT, LOADING, "'%s': its '%s' does not lie in the file", path, symbol);
    }
    (void)close(file.descriptor);
    return status;
}
