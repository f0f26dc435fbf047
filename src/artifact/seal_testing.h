/* SPDX-License-Identifier: Apache-2.0
 *
 * Changed bytes of an offline file with their checksums made right, so that what they mean is judged. */
#ifndef RONDO_SRC_ARTIFACT_SEAL_TESTING_H
#define RONDO_SRC_ARTIFACT_SEAL_TESTING_H

#include <string.h>

#include "artifact/artifact.h"

typedef struct at_bytes {
    uint8_t *data; /* aligned as a mapping is */
    size_t size;
} at_bytes;

static inline rondo__artifact_entry *at_entry(const at_bytes *bytes, uint32_t index) {
    const rondo__artifact_header *header = (const void *)bytes->data;
    return (rondo__artifact_entry *)(void *)(bytes->data + header->header_bytes + (size_t)index * header->entry_bytes);
}

/* Makes the checksums right again, as far as the table makes sense. */
static inline void at_seal(const at_bytes *bytes) {
    rondo__artifact_header header;
    if (bytes->size < sizeof header) return;
    memcpy(&header, bytes->data, sizeof header);
    uint64_t table = header.header_bytes + (uint64_t)header.entry_count * header.entry_bytes;
    if (header.entry_count > RONDO__ARTIFACT_PARTITIONS_MAX || header.entry_bytes > 4096u ||
        header.entry_bytes < sizeof(rondo__artifact_entry) || header.header_bytes > 4096u ||
        header.header_bytes < sizeof header || table + 8u > bytes->size)
        return;
    for (uint32_t i = 0; i < header.entry_count; i++) {
        uint8_t *place = bytes->data + header.header_bytes + (size_t)i * header.entry_bytes;
        rondo__artifact_entry entry;
        memcpy(&entry, place, sizeof entry);
        if (entry.offset > bytes->size || entry.bytes > bytes->size - entry.offset) continue;
        entry.checksum = rondo__artifact_checksum(bytes->data + entry.offset, (size_t)entry.bytes);
        memcpy(place, &entry, sizeof entry);
    }
    uint64_t checksum = rondo__artifact_checksum(bytes->data, (size_t)table);
    memcpy(bytes->data + table, &checksum, sizeof checksum);
}

#endif
