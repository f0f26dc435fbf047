/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written is what is read, to the bit; and what was cut, changed or made by somebody newer is refused. */
#include <dirent.h>
#include <sys/stat.h>

#include "artifact/artifact_testing.h"
#include "artifact/hash.h"
#include "plan/plan_testing.h"

typedef struct file_fixture {
    plan_fixture plan;
    _Alignas(64) float packed[16];
    rondo__artifact_block blocks[3];
    char path[256];
    at_bytes bytes;
    rondo_plan *read;
} file_fixture;

static void file_close(file_fixture *f) {
    rondo_plan_release(f->read);
    at_free(&f->bytes);
}

/* The plan of plan_testing.h, with a packed block, a wait and a record, written and loaded. */
static void file_open(rondo_test *t, file_fixture *f) {
    memset(f, 0, sizeof *f);
    pt_open(t, &f->plan);
    T_DEFER(t, file_close, f);
    for (uint32_t i = 0; i < 16; i++) f->packed[i] = (float)i * 0.25f;
    for (uint32_t i = 0; i < 4; i++) f->plan.constant[i] = (float)i;
    f->plan.steps[1].packed_bytes = sizeof f->packed;
    f->plan.steps[1].variant = "a variant";
    f->plan.plan->event_count = 1;
    f->plan.steps[0].record = 0;
    static const uint32_t waits[] = {0};
    f->plan.steps[2].waits = waits;
    f->plan.steps[2].wait_count = 1;
    /* The second half of the constant, by an address of its own. */
    static const int64_t half[1] = {2};
    f->plan.view.byte_offset = 8;
    f->plan.view.shape = half;
    f->blocks[1] = (rondo__artifact_block){f->packed, "ref.test", NULL, 0};
    (void)snprintf(f->path, sizeof f->path, "%s/small.rondo", rondo_test_folder(t));
    T_OK(t, rondo__artifact_write(rondo_test_allocator(t), f->plan.plan, f->blocks, f->path));
    at_load(t, f->path, &f->bytes);
}

typedef struct plan_text {
    char data[16384];
    size_t size;
} plan_text;

static int32_t append(void *user, const char *data, size_t size) {
    plan_text *text = user;
    if (size > sizeof text->data - 1 - text->size) return 1;
    memcpy(text->data + text->size, data, size);
    text->size += size;
    return 0;
}

/* Every form of the dump shows everything that a plan says in numbers and names. */
static void same_dump(rondo_test *t, const rondo_plan *a, const rondo_plan *b) {
    static plan_text x, y;
    for (rondo_dump_format format = RONDO_DUMP_TEXT; format <= RONDO_DUMP_JSON; format++) {
        memset(&x, 0, sizeof x);
        memset(&y, 0, sizeof y);
        T_OK(t, rondo_plan_dump(a, format, append, &x));
        T_OK(t, rondo_plan_dump(b, format, append, &y));
        T_STR(t, y.data, x.data);
    }
}

static void test_what_is_written_is_read(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    T_OK(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read));
    same_dump(t, f.plan.plan, f.read);
    const rondo_plan *p = f.read;
    T_STR(t, p->name, "small \"plan\"");
    T_EQ(t, p->guards[0].bytes, 8);
    T_EQ(t, memcmp(p->guards[0].value, &f.plan.guard, 8), 0);
    T_EQ(t, memcmp(p->buffers[PT_C].data, f.plan.constant, 16), 0);
    T_TRUE(t, p->steps[2].inputs[1].constant == p->buffers[PT_C].data); /* one constant, not two copies */
    T_EQ(t, memcmp(p->steps[1].packed, f.packed, sizeof f.packed), 0);
    T_EQ(t, (uintptr_t)p->steps[1].packed % 64u, 0);
    T_STR(t, p->steps[1].packed_set, "ref.test");
    T_STR(t, p->steps[1].variant, "a variant");
    T_TRUE(t, !p->steps[0].variant && !p->steps[0].packed);
    T_EQ(t, p->steps[2].waits[0], 0);
    const rondo_attribute *a = p->steps[2].attributes;
    T_EQ(t, p->steps[2].attribute_count, 8);
    T_EQ(t, a[0].value.i, -5);
    T_EQ(t, a[1].value.f == 0.5f, 1);
    T_EQ(t, a[2].value.s.size, 3);
    T_EQ(t, memcmp(a[2].value.s.data, "a\"b", 4), 0);
    T_EQ(t, a[3].value.ints[0], -7);
    T_EQ(t, memcmp(a[4].value.floats, f.plan.floats, 8), 0);
    T_EQ(t, memcmp(a[5].value.strings[1].data, "\xff", 2), 0);
    T_EQ(t, a[6].value.tensor->shape[0], 2);
    T_EQ(t, a[6].value.tensor->byte_offset, 0);
    T_TRUE(t, a[6].value.tensor->data == (const uint8_t *)p->buffers[PT_C].data + 8);
    T_EQ(t, memcmp(&a[7].value.f, &f.plan.attributes[7].value.f, 4), 0);
    /* The constant with all its views, the guard's value and the attribute's floats, each once at its 64 bytes. */
    T_EQ(t, p->file->constants->bytes, 64 + 64 + 8);
    /* In place: what the plan points to lies in the file. */
    const rondo__artifact *file = p->file;
    const uint8_t *at = p->buffers[PT_C].data;
    T_TRUE(t, at >= file->data && at < file->data + file->bytes);
}

static void test_same_plan_same_bytes(rondo_test *t) {
    file_fixture f, g;
    file_open(t, &f);
    file_open(t, &g); /* at other addresses */
    T_EQ(t, f.bytes.size, g.bytes.size);
    T_EQ(t, memcmp(f.bytes.data, g.bytes.data, f.bytes.size), 0);
    /* And what was read is written again as it was. */
    T_OK(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read));
    T_OK(t, rondo__artifact_write(rondo_test_allocator(t), f.read, f.blocks, g.path));
    at_free(&g.bytes);
    g.bytes.data = NULL;
    at_load(t, g.path, &g.bytes);
    T_EQ(t, f.bytes.size, g.bytes.size);
    T_EQ(t, memcmp(f.bytes.data, g.bytes.data, f.bytes.size), 0);
}

static void refused(rondo_test *t, file_fixture *f, const at_bytes *bytes, size_t place) {
    rondo_status status = rondo__artifact_read(rondo_test_allocator(t), bytes->data, bytes->size, &f->read);
    if (!status) rondo_test_fail(t, __FILE__, __LINE__, "accepted with a change at %zu", place);
    rondo_code code = rondo_status_code(status);
    rondo_status_release(status);
    T_TRUE(t, code == RONDO_CODE_CORRUPT || code == RONDO_CODE_UNSUPPORTED);
}

static void test_cut_anywhere_is_refused(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    for (size_t size = 0; size < f.bytes.size; size++) {
        /* A copy of just that size, so that a sanitizer sees a byte too many. */
        at_bytes cut = {aligned_alloc(64, (f.bytes.size + 63u) & ~(size_t)63u), size};
        uint8_t *end = cut.data + ((f.bytes.size + 63u) & ~(size_t)63u) - ((size + 63u) & ~(size_t)63u);
        memcpy(end, f.bytes.data, size);
        at_bytes tail = {end, size};
        refused(t, &f, &tail, size);
        at_free(&cut);
    }
}

static void test_cut_files_are_refused(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    static const size_t keep[] = {0, 1, 7, 63, 64, 300};
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        T_EQ(t, truncate(f.path, (off_t)keep[i]), 0);
        T_FAILS(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read), CORRUPT, "while opening");
        FILE *file = fopen(f.path, "wb");
        T_TRUE(t, file && fwrite(f.bytes.data, 1, f.bytes.size, file) == f.bytes.size && fclose(file) == 0);
    }
    T_OK(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read));
}

static void test_every_changed_byte_is_refused(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    for (size_t i = 0; i < f.bytes.size; i++) {
        static const uint8_t changes[] = {0xff, 0x01, 0x80};
        for (size_t k = 0; k < sizeof changes; k++) {
            f.bytes.data[i] ^= changes[k];
            refused(t, &f, &f.bytes, i);
            f.bytes.data[i] ^= changes[k];
        }
    }
    T_OK(t, rondo__artifact_read(rondo_test_allocator(t), f.bytes.data, f.bytes.size, &f.read));
}

/* With right checksums a change is judged by what it means: refused, or a plan that verifies. */
static void test_every_changed_byte_under_a_seal_is_judged(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    uint32_t accepted = 0;
    uint8_t *whole = malloc(f.bytes.size);
    memcpy(whole, f.bytes.data, f.bytes.size);
    for (size_t i = 0; i < f.bytes.size; i++) {
        static const uint8_t changes[] = {0xff, 0x01, 0x80};
        for (size_t k = 0; k < sizeof changes; k++) {
            f.bytes.data[i] ^= changes[k];
            at_seal(&f.bytes);
            rondo_status status = rondo__artifact_read(rondo_test_allocator(t), f.bytes.data, f.bytes.size, &f.read);
            if (!status) {
                static plan_text text;
                accepted++;
                memset(&text, 0, sizeof text);
                rondo_status_release(rondo_plan_dump(f.read, RONDO_DUMP_JSON, append, &text));
                rondo_plan_release(f.read);
                f.read = NULL;
            }
            rondo_status_release(status);
            memcpy(f.bytes.data, whole, f.bytes.size);
        }
    }
    free(whole);
    T_TRUE(t, accepted > 0 && accepted < f.bytes.size * 3); /* data may be anything, structure may not */
}

static rondo__artifact_header *header_of(const file_fixture *f) {
    return (rondo__artifact_header *)(void *)f->bytes.data;
}

static void test_versions(rondo_test *t) {
    file_fixture f;
    char version[32];
    const rondo_allocator *allocator = rondo_test_allocator(t);
    file_open(t, &f);
    header_of(&f)->minor = RONDO__ARTIFACT_MINOR + 7;
    at_seal(&f.bytes);
    T_OK(t, rondo__artifact_read(allocator, f.bytes.data, f.bytes.size, &f.read));
    same_dump(t, f.plan.plan, f.read);
    T_EQ(t, f.read->file->minor, RONDO__ARTIFACT_MINOR + 7);
    rondo_plan_release(f.read);
    f.read = NULL;
    header_of(&f)->major = RONDO__ARTIFACT_MAJOR + 1;
    at_seal(&f.bytes);
    (void)snprintf(version, sizeof version, "version 2.%d", RONDO__ARTIFACT_MINOR + 7);
    T_FAILS(t, rondo__artifact_read(allocator, f.bytes.data, f.bytes.size, &f.read), UNSUPPORTED, version);
    header_of(&f)->major = 0;
    at_seal(&f.bytes);
    version[8] = '0';
    T_FAILS(t, rondo__artifact_read(allocator, f.bytes.data, f.bytes.size, &f.read), UNSUPPORTED, version);
    header_of(&f)->major = RONDO__ARTIFACT_MAJOR;
    header_of(&f)->order = __builtin_bswap32(RONDO__ARTIFACT_ORDER);
    at_seal(&f.bytes);
    T_FAILS(t, rondo__artifact_read(allocator, f.bytes.data, f.bytes.size, &f.read), UNSUPPORTED, "byte order");
}

/* A newer minor version may have longer structs and partitions that nobody here knows. */
static void test_newer_minor_with_more_in_it(rondo_test *t) {
    file_fixture f;
    at_bytes more = {0};
    const rondo_allocator *allocator = rondo_test_allocator(t);
    file_open(t, &f);
    T_DEFER(t, at_free, &more);
    const rondo__artifact_header *old = header_of(&f);
    uint32_t count = old->entry_count;
    more.data = aligned_alloc(64, f.bytes.size + 4096);
    if (!more.data) T_OK(t, RONDO__FAIL(OUT_OF_MEMORY, FILE, "no memory for the copy"));
    memset(more.data, 0, f.bytes.size + 4096);
    rondo__artifact_header header = *old;
    header.minor++;
    header.header_bytes = 128;
    header.entry_bytes = 80;
    header.entry_count = count + 1;
    size_t end = 128 + (count + 1) * 80 + 8;
    for (uint32_t i = 0; i < count; i++) {
        rondo__artifact_entry entry = *at_entry(&f.bytes, i);
        end = (end + 63u) & ~(size_t)63u;
        memcpy(more.data + end, f.bytes.data + entry.offset, (size_t)entry.bytes);
        entry.offset = end;
        if (entry.kind == RONDO__ARTIFACT_PLAN) entry.bytes += 24; /* words behind the last one known */
        end += (size_t)entry.bytes;
        memcpy(more.data + 128 + i * 80, &entry, sizeof entry);
    }
    end = (end + 63u) & ~(size_t)63u;
    rondo__artifact_entry unknown = {77, 0, end, 5, 0, RONDO__ARTIFACT_NO_TEXT, 0};
    memcpy(more.data + 128 + count * 80, &unknown, sizeof unknown);
    memcpy(more.data + end, "later", 5);
    more.size = end + 5;
    header.file_bytes = more.size;
    memcpy(more.data, &header, sizeof header);
    at_seal(&more);
    T_OK(t, rondo__artifact_read(allocator, more.data, more.size, &f.read));
    same_dump(t, f.plan.plan, f.read);
    T_EQ(t, f.read->file->part_count, count + 1);
    rondo_plan_release(f.read);
    f.read = NULL;
    at_entry(&more, count)->flags = RONDO__ARTIFACT_NEEDED;
    at_seal(&more);
    T_FAILS(t, rondo__artifact_read(allocator, more.data, more.size, &f.read), UNSUPPORTED, "kind 77");
    at_entry(&more, count)->flags = 0;
    ((rondo__artifact_header *)(void *)more.data)->minor = RONDO__ARTIFACT_MINOR; /* then it is no newer one */
    at_seal(&more);
    T_FAILS(t, rondo__artifact_read(allocator, more.data, more.size, &f.read), CORRUPT, "another size");
}

/* A block that another version of the library packed is not used; the constants are there to pack it again. */
static void test_blocks_of_another_writer_are_left_alone(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    rondo__artifact_entry *strings = at_entry(&f.bytes, 0);
    char *version =
        memmem(f.bytes.data + strings->offset, strings->bytes, RONDO_VERSION_STRING, sizeof RONDO_VERSION_STRING);
    T_TRUE(t, version != NULL);
    version[0]++;
    at_seal(&f.bytes);
    T_OK(t, rondo__artifact_read(rondo_test_allocator(t), f.bytes.data, f.bytes.size, &f.read));
    T_TRUE(t, !f.read->steps[1].packed);
    T_EQ(t, f.read->steps[1].packed_bytes, sizeof f.packed);
}

static uint32_t files_in(const char *folder) {
    uint32_t count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) count += entry->d_name[0] != '.';
    if (open) (void)closedir(open);
    return count;
}

static void test_whole_or_not_at_all(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    char folder[300];
    const rondo_allocator *allocator = rondo_test_allocator(t);
    (void)snprintf(folder, sizeof folder, "%s/folder", rondo_test_folder(t));
    (void)mkdir(folder, 0777);
    T_FAILS(t, rondo__artifact_write(allocator, f.plan.plan, f.blocks, folder), IO, "put in its place");
    T_FAILS(t, rondo__artifact_write(allocator, f.plan.plan, f.blocks, "/nowhere/x.rondo"), IO, "created");
    T_EQ(t, files_in(rondo_test_folder(t)), 2); /* the file and the folder: nothing half done */
    /* Replaced while it is mapped: who has the old one keeps it. */
    T_OK(t, rondo__artifact_open(allocator, f.path, &f.read));
    f.plan.constant[0] = 42.0f;
    T_OK(t, rondo__artifact_write(allocator, f.plan.plan, f.blocks, f.path));
    T_EQ(t, *(const float *)f.read->buffers[PT_C].data == 0.0f, 1);
    T_FAILS(t, rondo__artifact_open(allocator, folder, &f.read), IO, "not a regular file");
    T_FAILS(t, rondo__artifact_open(allocator, "/nowhere/x.rondo", &f.read), NOT_FOUND, NULL);
}

/* The shortest plan that there is: what counts words must not want more than it has. */
static void test_short_things(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    f.plan.attributes[0].kind = RONDO_ATTRIBUTE_INTS;
    f.plan.attributes[0].count = 0;
    f.plan.attributes[0].value.ints = f.plan.ints;
    f.plan.steps[2].attribute_count = 1;
    f.plan.plan->remark_count = 0;
    T_OK(t, rondo__artifact_write(rondo_test_allocator(t), f.plan.plan, f.blocks, f.path));
    T_OK(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read));
    same_dump(t, f.plan.plan, f.read);
    rondo_plan_release(f.read);
    f.read = NULL;
    f.plan.plan->step_count = f.plan.plan->buffer_count = f.plan.plan->guard_count = 0; /* nothing at all */
    f.plan.plan->input_count = f.plan.plan->output_count = f.plan.plan->event_count = 0;
    T_OK(t, rondo__artifact_write(rondo_test_allocator(t), f.plan.plan, f.blocks, f.path));
    T_OK(t, rondo__artifact_open(rondo_test_allocator(t), f.path, &f.read));
    T_EQ(t, f.read->step_count, 0);
}

static void test_what_no_file_holds_is_refused_by_name(rondo_test *t) {
    file_fixture f;
    file_open(t, &f);
    f.plan.attributes[0].kind = RONDO_ATTRIBUTE_GRAPH;
    T_FAILS(t, rondo__artifact_write(rondo_test_allocator(t), f.plan.plan, f.blocks, f.path), UNSUPPORTED,
            "attribute 'i' of 'Add'");
}

/* Wide vectors and the running sum are different code for one number: blocks, their ends, and every alignment. */
static void test_checksums_agree(rondo_test *t) {
    static uint8_t data[9000];
    for (uint32_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t i = 0; i < 700; i++) {
        size_t bytes = i < 300 ? i : i * 12u, from = i % 67u;
        rondo__hash hash;
        uint64_t wide = 0;
        rondo__hash_init(&hash);
        rondo__hash_add(&hash, data + from, bytes / 3);
        rondo__hash_add(&hash, data + from + bytes / 3, bytes - bytes / 3);
        uint64_t sum = rondo__hash_value(&hash);
        T_EQ(t, rondo__artifact_checksum(data + from, bytes), sum);
        if (rondo__hash_wide(data + from, bytes, &wide)) T_EQ(t, wide, sum);
    }
    /* XXH3 of nothing: the number of its own tables. */
    T_EQ(t, rondo__artifact_checksum(NULL, 0), 0x2d06800538d394c2u);
}

RONDO_TEST_MAIN(T_PLAIN(test_checksums_agree), T(test_what_is_written_is_read), T(test_same_plan_same_bytes),
                T_PLAIN(test_cut_anywhere_is_refused), T_PLAIN(test_cut_files_are_refused),
                T_PLAIN(test_every_changed_byte_is_refused),
                T_PLAIN(test_every_changed_byte_under_a_seal_is_judged), T(test_versions),
                T(test_newer_minor_with_more_in_it), T(test_blocks_of_another_writer_are_left_alone),
                T(test_whole_or_not_at_all), T(test_short_things), T(test_what_no_file_holds_is_refused_by_name))
