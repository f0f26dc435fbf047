/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds every file named, and every file of every folder named, to a fuzz target, in the order of their names: what
 * once was found stays found, without a fuzzer. A folder that is not there holds nothing. Closes with the count. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPLAY_FILE_MAX ((long)64 << 20)

static size_t replay_count;

/* An exact copy on the heap, so that a sanitizer sees the first byte past the end. */
static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    uint8_t *data = size >= 0 && size <= REPLAY_FILE_MAX ? malloc(size ? (size_t)size : 1) : NULL;
    int result = 1;
    if (data && fseek(file, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)size, file) == (size_t)size) {
        /* Named before, so that a crash says which file it was. */
        if (getenv("RONDO_REPLAY_VERBOSE")) fprintf(stderr, "%s\n", path);
        (void)LLVMFuzzerTestOneInput(data, (size_t)size);
        replay_count++;
        result = 0;
    } else {
        fprintf(stderr, "%s: cannot be read, or is larger than 64 MiB\n", path);
    }
    free(data);
    if (file) (void)fclose(file);
    return result;
}

static int replay_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int replay_path(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return 0;
    if (!S_ISDIR(status.st_mode)) return replay_file(path);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, replay_visible, alphasort), result = count < 0;
    for (int i = 0; i < count; i++) {
        char child[4096];
        if (snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name) < (int)sizeof child)
            result |= replay_path(child);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int main(int count, char **arguments) {
    int result = 0;
    for (int i = 1; i < count; i++) result |= replay_path(arguments[i]);
    printf("%zu inputs replayed\n", replay_count);
    return result;
}
