/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a call list, for the files of this folder that make, run and explain one.
 *
 * A node costs 64 hot bytes, 12 cold ones, and 4 an argument. What repeats from node to node is kept once and numbered:
 * names, allocations (references), and what is known of an argument beside its word (details). All of it lies in a few
 * growing arrays, so that a million nodes are a few dozen allocations.
 */
#ifndef RONDO_SRC_GRAPH_LIST_PRIVATE_H
#define RONDO_SRC_GRAPH_LIST_PRIVATE_H

#include "base/checked.h"
#include "graph/list.h"

#define RONDO__LIST_ENTRIES_MAX ((size_t)1 << 28)
#define RONDO__LIST_ARGUMENTS_MAX ((size_t)1 << 30)
#define RONDO__LIST_NAMES_BYTES_MAX ((size_t)1 << 32)
#define RONDO__LIST_WORDS_IN_ENTRY 5u
#define RONDO__LIST_MEMO_BITS 9
#define RONDO__LIST_MEMO ((size_t)1 << RONDO__LIST_MEMO_BITS)
#define RONDO__LIST_HUGE ((size_t)2 << 20) /* bytes of a huge page, where there are any */
#define RONDO__LIST_RECENT 4u
#define RONDO__LIST_NO_SLOT UINT32_MAX

/* Numbers of references that stand for no allocation. */
enum { RONDO__LIST_REFERENCE_NONE = 0, RONDO__LIST_REFERENCE_FOREIGN = 1, RONDO__LIST_REFERENCE_FIRST = 2 };
/* Number of the detail of every immediate value. */
enum { RONDO__LIST_DETAIL_VALUE = 0 };

/* Cold, one a node. */
typedef struct rondo__list_node {
    uint32_t first; /* of its arguments in `details` */
    uint32_t name;  /* 0: none */
    uint8_t count;
    uint8_t kind;
    uint8_t copy_kind;
    uint8_t side; /* 1: its words are in a block */
} rondo__list_node;

/* What is known of an argument beside its word. */
typedef struct rondo__list_detail {
    uint64_t length;
    uint32_t reference;
    uint32_t slot;
    uint32_t access;
    uint32_t reserved;
} rondo__list_detail;

typedef struct rondo__list_name {
    const char *text;
    uint64_t hash;
} rondo__list_name;

/* Words that do not fit an entry, with the kernel that gets them: the trampoline's context. */
typedef struct rondo__list_block {
    rondo_kernel_function function;
    const void *context;
    uint64_t entry;
    uint64_t count;
    uint64_t words[];
} rondo__list_block;
#define RONDO__LIST_BLOCK_HEAD (sizeof(rondo__list_block) / sizeof(uint64_t))

/* One word that bind writes. */
typedef struct rondo__list_mention {
    uint64_t *target; /* baked by seal */
    uint64_t addend;
    uint32_t entry;
    uint32_t argument; /* of the entry */
} rondo__list_mention;

typedef struct rondo__list_slot {
    uint64_t address, length; /* address 0: matches nothing */
    uint64_t bound;           /* where the slot is now; 0 before the first bind */
    uint32_t access;
    uint32_t reserved;
    rondo__buffer mentions; /* rondo__list_mention */
} rondo__list_slot;

/* Open addressing over numbers: cells hold number + 1. */
typedef struct rondo__list_index {
    uint32_t *cells;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} rondo__list_index;

/* The last arguments seen, by address. True only while nothing that the watcher watches was freed. */
typedef struct rondo__list_memo {
    uint64_t word, length;
    uint32_t stamp; /* the list's, with the access in its lowest bits */
    uint32_t detail;
} rondo__list_memo;

struct rondo__call_list {
    rondo_allocator allocator;
    rondo_device *device;           /* not retained */
    rondo__memory_watcher *watcher; /* null: nothing is resolved */
    rondo_list baked;
    bool lowered; /* every node is a CALL of a host function: the backend runs the list itself */
    bool sealed;
    bool addressable;  /* host memory and device memory are one */
    void *entries_raw; /* as the allocator gave it; entries is the first cache line in it */
    size_t entries_bytes;
    rondo_list_entry *entries;
    size_t entry_count, entry_capacity;
    rondo__buffer nodes;      /* rondo__list_node */
    rondo__buffer arguments;  /* uint32_t: number of a detail */
    rondo__buffer side;       /* uint64_t: blocks */
    rondo__buffer details;    /* rondo__list_detail */
    rondo__buffer references; /* rondo__memory_reference */
    rondo__buffer names;      /* rondo__list_name */
    rondo__buffer slots;      /* rondo__list_slot */
    rondo__arena texts;
    rondo__list_index detail_index, reference_index, name_index;
    uint64_t counts[RONDO__LIST_KINDS];
    uint32_t lane;                            /* of what is appended next */
    const rondo__memory_reference *inherited; /* of what is appended next, one an argument; null: none */
    bool mixed;                               /* some entry is no call */
    rondo__order *order;                      /* null: one lane */
    rondo__buffer events;                     /* rondo_event *, retained */
    rondo__buffer children;                   /* rondo__list_child */
    uint64_t foreign;                         /* arguments whose memory is not ours */
    bool any_foreign;                         /* some detail says so */
    uint32_t last_name;
    uint32_t last_detail[4];             /* by access: the details used last */
    uint32_t recent[RONDO__LIST_RECENT]; /* references used last */
    uint32_t recent_at;
    uint64_t slots_low, slots_high; /* every slot with an address lies between them */
    uint32_t stamp;                 /* of the memo's entries that hold; a multiple of 4 */
    rondo__list_memo *memo;         /* RONDO__LIST_MEMO cells while the list grows; then null */
    const rondo__list_memo *recall; /* the same, or cells that hold nothing */
};

/* A node as it is appended. */
typedef struct rondo__list_appended {
    rondo__list_kind kind;
    rondo_copy_kind copy_kind;
    rondo_kernel kernel;
    const char *name;
    const rondo_argument *arguments;
    uint32_t count;
    uint32_t foreign; /* bit i: argument i is host memory of a device that cannot address it */
} rondo__list_appended;
/* A failure leaves the list as it was. */
RONDO_MUST_USE rondo_status rondo__list_append(rondo__call_list *list, const rondo__list_appended *a);
/* list_control.c: the argument of a condition, whatever else the caller said of it. */
RONDO_MUST_USE rondo_status rondo__list_condition_argument(uint64_t address, rondo_argument *out_argument);

/* list_intern.c: what is kept once. */
RONDO_MUST_USE rondo_status rondo__list_intern_init(rondo__call_list *list);
/* The list is whole: what only growing needs goes. */
void rondo__list_intern_close(rondo__call_list *list);
void rondo__list_intern_deinit(rondo__call_list *list);
RONDO_MUST_USE rondo_status rondo__list_intern_name(rondo__call_list *list, const char *name, uint32_t *out_name);
RONDO_MUST_USE rondo_status rondo__list_intern_detail(rondo__call_list *list, const rondo__list_detail *detail,
                                                      uint32_t *out_number);
/* Drops the short cuts: what they know may have been freed since. */
void rondo__list_intern_forget(rondo__call_list *list);
/* The same for temporaries that were freed: their places may be another's by now. */
void rondo__list_intern_drop_ended(rondo__call_list *list);
static inline void rondo__list_intern_refresh(rondo__call_list *list) {
    if (list->watcher && atomic_load_explicit(&list->watcher->changed, memory_order_acquire))
        rondo__list_intern_drop_ended(list);
}
/* The detail of an argument. foreign: host memory of a device that cannot address it. known: what it resolves to, when
 * that is inherited; null: nobody knows. */
RONDO_MUST_USE rondo_status rondo__list_intern_argument(rondo__call_list *list, const rondo_argument *argument,
                                                        bool foreign, const rondo__memory_reference *known,
                                                        uint32_t *out_detail);

/* list_run.c: the host functions that copies, fills, host calls and long calls become. */
int32_t rondo__list_kernel_copy(const void *context, const uint64_t *words);
int32_t rondo__list_kernel_fill(const void *context, const uint64_t *words);
int32_t rondo__list_kernel_host(const void *context, const uint64_t *words);
int32_t rondo__list_kernel_block(const void *context, const uint64_t *words);
/* A function as a word and back. */
static inline uint64_t rondo__list_word_of(rondo_host_function function) { return (uint64_t)(uintptr_t)function; }
static inline rondo_host_function rondo__list_function_of(uint64_t word) {
    return (rondo_host_function)(uintptr_t)word;
}

/* A record's or wait's event: the backend's handle is words[0], ours words[1]. */
static inline rondo_event *rondo__list_event_of(const uint64_t *words) { return (rondo_event *)(uintptr_t)words[1]; }

/* Whether nothing that the list mentions was freed, temporaries of its pool included: only then do the short cuts hold. */
static inline bool rondo__list_is_fresh(const rondo__call_list *list) {
    return !list->watcher || (atomic_load_explicit(&list->watcher->stale, memory_order_acquire) == 0 &&
                              atomic_load_explicit(&list->watcher->changed, memory_order_acquire) == 0);
}
/* The memo's cell. Neighbouring buffers, and a buffer that is read and written, get cells of their own. */
static inline size_t rondo__list_memo_of(uint64_t word, uint32_t access) {
    uint64_t spread = (word >> 4) ^ ((uint64_t)access << 60);
    return (size_t)((spread * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - RONDO__LIST_MEMO_BITS));
}
/* The common cases of rondo__list_intern_argument, where capture spends its time: a value, and what was seen before. */
static inline bool rondo__list_recall(const rondo__call_list *list, const rondo_argument *a, uint32_t *out_detail) {
    const rondo__list_memo *memo = &list->recall[rondo__list_memo_of(a->word, a->access)];
    if (a->access == RONDO_ACCESS_VALUE) {
        *out_detail = RONDO__LIST_DETAIL_VALUE;
        return true;
    }
    *out_detail = memo->detail;
    return memo->word == a->word && memo->length == a->length && memo->stamp == (list->stamp | a->access);
}

static inline const rondo__list_node *rondo__list_node_at(const rondo__call_list *list, uint64_t entry) {
    return RONDO__BUFFER_AT(&list->nodes, const rondo__list_node, entry);
}
static inline const rondo__list_detail *rondo__list_detail_at(const rondo__call_list *list, uint32_t detail) {
    return RONDO__BUFFER_AT(&list->details, const rondo__list_detail, detail);
}
static inline rondo__list_slot *rondo__list_slot_at(const rondo__call_list *list, uint32_t slot) {
    return RONDO__BUFFER_AT(&list->slots, rondo__list_slot, slot);
}
static inline const char *rondo__list_name_at(const rondo__call_list *list, uint32_t name) {
    return name ? RONDO__BUFFER_AT(&list->names, rondo__list_name, name)->text : "";
}
/* Until the list is sealed the context of an entry with a block is the block's offset. */
static inline rondo__list_block *rondo__list_block_of(const rondo__call_list *list, uint64_t entry) {
    const void *context = list->entries[entry].context;
    if (list->sealed) return (rondo__list_block *)(uintptr_t)context;
    return (rondo__list_block *)(void *)RONDO__BUFFER_AT(&list->side, uint64_t, (uintptr_t)context);
}
static inline uint64_t *rondo__list_words(const rondo__call_list *list, uint64_t entry) {
    return rondo__list_node_at(list, entry)->side ? rondo__list_block_of(list, entry)->words
                                                  : list->entries[entry].words;
}
static inline rondo_kernel rondo__list_kernel_of(const rondo__call_list *list, uint64_t entry) {
    if (rondo__list_node_at(list, entry)->side) {
        const rondo__list_block *block = rondo__list_block_of(list, entry);
        return (rondo_kernel){block->function, block->context};
    }
    return (rondo_kernel){list->entries[entry].function, list->entries[entry].context};
}
/* Room for `count` more elements, growing by doubling. */
RONDO_MUST_USE rondo_status rondo__list_grow(rondo__buffer *buffer, size_t count);
static inline rondo_status rondo__list_room(rondo__buffer *buffer, size_t count) {
    return buffer->capacity - buffer->count >= count ? RONDO_OK : rondo__list_grow(buffer, count);
}
/* "node 3 'Add_1'" or "node 3"; always terminated. Returns the buffer. */
const char *rondo__list_node_text(uint64_t entry, const char *name, char *buffer, size_t capacity);
#define RONDO__LIST_NODE_TEXT 160

#endif
