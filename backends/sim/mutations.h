/* SPDX-License-Identifier: Apache-2.0
 *
 * Deliberate faults: `mutate=NAME` or `mutate=#N` makes a device that is wrong in one way. A suite that claims to prove a
 * backend right must find each of them. The counter "mutations" says how many there are; `mutate=?` fails and lists
 * them, as many as a status holds, `mutate=?N` from number N on. */
#ifndef RONDO_BACKENDS_SIM_MUTATIONS_H
#define RONDO_BACKENDS_SIM_MUTATIONS_H

#include "sim.h"

#define RONDO__SIM_MUTATIONS(X)                                                                                    \
    X(REPLAY_DROPS, "replay_drops", "once a capture has ended, every third launch is lost")                        \
    X(REPLAY_REORDERS, "replay_reorders", "once a capture has ended, a launch changes places with the one before") \
    X(REPLAY_OLD, "replay_old", "once a capture has ended, a call gets the arguments that it had the first time")  \
    X(LAUNCH_DROPS, "launch_drops", "every fourth launch is lost")                                                 \
    X(LAUNCH_TWICE, "launch_twice", "every launch runs twice")                                                     \
    X(LAUNCH_REORDERS, "launch_reorders", "every second launch changes places with the work before it")            \
    X(VALUES_NARROW, "values_narrow", "immediate arguments keep their low 32 bits")                                \
    X(FIVE_WORDS, "five_words", "immediate arguments behind the fifth are 0")                                      \
    X(WORDS_SWAPPED, "words_swapped", "the first two arguments change places where both are memory of one length") \
    X(NAME_LOST, "name_lost", "a failure does not name its call")                                                  \
    X(COPY_SWAPPED, "copy_swapped", "copies within the device go from the destination to the source")              \
    X(COPY_SHORT, "copy_short", "copies leave out the last byte")                                                  \
    X(COPY_SHIFTED, "copy_shifted", "copies arrive one byte late")                                                 \
    X(COPY_KIND, "copy_kind", "a copy's direction is guessed from the addresses, whatever was asked")              \
    X(COPY_DROPS, "copy_drops", "every third copy is lost")                                                        \
    X(FILL_SHORT, "fill_short", "fills leave out the last byte")                                                   \
    X(FILL_LONG, "fill_long", "fills write a byte too many where the allocation has one")                          \
    X(FILL_VALUE, "fill_value", "fills write zeros whatever was asked")                                            \
    X(HOST_TWICE, "host_twice", "host functions run twice")                                                        \
    X(HOST_SKIPPED, "host_skipped", "every second host function is lost")                                          \
    X(HOST_EARLY, "host_early", "host functions run when they are enqueued")                                       \
    X(SYNC_EARLY, "sync_early", "a synchronise returns before the last operation of the stream, which never runs") \
    X(QUERY_TRUE, "query_true", "a stream always says that it is done")                                            \
    X(ERROR_SWALLOWED, "error_swallowed", "a synchronise succeeds whatever happened")                              \
    X(ERROR_REPEATED, "error_repeated", "a failure is told by two synchronises")                                   \
    X(ERROR_ELSEWHERE, "error_elsewhere", "a failure is told by another stream's synchronise")                     \
    X(ERROR_CODE, "error_code", "a kernel's failure has the code of an internal error")                            \
    X(WAIT_IGNORED, "wait_ignored", "a stream does not wait for events")                                           \
    X(RECORD_IGNORED, "record_ignored", "an event is not recorded")                                                \
    X(EVENT_EARLY, "event_early", "an event is done as soon as it is recorded")                                    \
    X(EVENT_QUERY_TRUE, "event_query_true", "an event always says that it is done")                                \
    X(EVENT_SYNC_EARLY, "event_sync_early", "waiting for an event waits for nothing")                              \
    X(FREE_NOTHING, "free_nothing", "free frees nothing")                                                          \
    X(UNALIGNED, "unaligned", "allocations are aligned to 8 bytes")                                                \
    X(OVERLAP, "overlap", "an allocation that fits into the one before is given the same memory")                  \
    X(CLOBBER, "clobber", "an allocation overwrites the start of the one before")                                  \
    X(OOM_MISSED, "oom_missed", "an allocation beyond the memory there is succeeds")                               \
    X(OOM_CODE, "oom_code", "an allocation that finds no memory fails with an internal error")                     \
    X(MEMORY_INFO, "memory_info", "all memory is always free")                                                     \
    X(SAYS_INLINE, "says_inline", "the device says that enqueued work has finished when the call returns")         \
    X(WRONG_INDEX, "wrong_index", "the device says another index than it was opened with")                         \
    X(WRONG_ALIGNMENT, "wrong_alignment", "the device promises an alignment that its allocations do not have")     \
    X(NOT_CAPABLE, "not_capable", "the device denies the graphs that its type promises")                           \
    X(COUNTER_WRONG, "counter_wrong", "counts are one too high")                                                   \
    X(COUNTER_ANY, "counter_any", "a counter of any name answers 0")                                               \
    X(CAPTURE_LEAKS, "capture_leaks", "a stream whose capture is over goes on refusing work")                      \
    X(REPLAY_BEHIND, "replay_behind",                                                                              \
      "once a capture has ended, a call gets the arguments of the one before of its kernel")                       \
    X(REPLAY_MERGES, "replay_merges", "once a capture has ended, a call that is like the one before it is lost")   \
    X(COPY_OLD, "copy_old",                                                                                        \
      "once a capture has ended, a copy behind a call goes where the first one behind such a call went")           \
    X(UPLOAD_OLD, "upload_old",                                                                                    \
      "once a capture has ended, a small copy to the device brings what the first one there brought")              \
    X(HOST_ONCE, "host_once", "once a capture has ended, a host function runs once with the same argument")        \
    X(FORK_LOST, "fork_lost", "once a capture has ended, a stream does not wait for one that is older")            \
    X(JOIN_LOST, "join_lost", "once a capture has ended, a stream does not wait for one that is newer")            \
    X(RECORD_ONCE, "record_once", "an event keeps its first record")                                               \
    X(RECORD_ELSEWHERE, "record_elsewhere", "an event is recorded on the first stream of the device")              \
    X(WAIT_ONCE, "wait_once", "an event is waited for once, and never again")                                      \
    X(WAIT_NEWEST, "wait_newest", "a wait is for the record that is the newest when its turn comes")               \
    X(WAIT_FAILED, "wait_failed", "a stream goes on behind an event whose work failed")                            \
    X(ERROR_RUNS_ON, "error_runs_on", "what stands behind a failure in its stream runs all the same")              \
    X(ERROR_LAST, "error_last", "of several failures of a stream the last is told")                                \
    X(COPY_ODD, "copy_odd", "copies of an odd number of bytes leave out the last")                                 \
    X(COPY_LARGE, "copy_large", "copies end after 64 KiB")                                                         \
    X(COPY_FORWARD, "copy_forward",                                                                                \
      "copies within the device go from the first byte to the last even where they overlap")                       \
    X(UPLOAD_LATE, "upload_late", "a copy to the device changes places with a call behind it")                     \
    X(DOWNLOAD_EARLY, "download_early", "a copy to the host changes places with a call before it")                 \
    X(FILL_WIDE, "fill_wide", "a fill's value is written as a number of 32 bits")                                  \
    X(FILL_ALIGNED, "fill_aligned", "fills begin at a multiple of four")                                           \
    X(HOST_REORDERS, "host_reorders", "a host function changes places with a copy before it")                      \
    X(PHILOX_OFFSET, "philox_offset", "rondo.philox begins at number 0 whatever the offset")                       \
    X(PHILOX_BLOCK, "philox_block", "rondo.philox begins where the block of its offset does")                      \
    X(PHILOX_SEED, "philox_seed", "rondo.philox takes the low half of its seed")                                   \
    X(PHILOX_REPEATS, "philox_repeats", "the second half of rondo.philox's numbers repeats the first")             \
    X(SIDE_LEAKS, "side_leaks", "a stream that joined a capture goes on refusing work when it is over")            \
    X(BLOCKS_WORK, "blocks_work", "while a stream captures, others refuse work")                                   \
    X(BLOCKS_THREADS, "blocks_threads", "while a stream captures, others refuse the work of other threads")        \
    X(BLOCKS_MEMORY, "blocks_memory", "while a stream captures, no memory is given out")                           \
    X(BLOCKS_WAITING, "blocks_waiting", "while a stream captures, nothing can be waited for")                      \
    X(PINNED_TWICE, "pinned_twice", "pinned host memory is given out twice")                                       \
    X(CONDITION_ALWAYS, "condition_always", "what a condition decides about runs in any case")                     \
    X(CONDITION_NEVER, "condition_never", "what a condition decides about never runs")                             \
    X(CONDITION_EARLY, "condition_early", "a condition is read when it is enqueued")                               \
    X(CONDITION_NARROW, "condition_narrow", "of a condition the low 32 bits are looked at")                        \
    X(CONDITION_INNER, "condition_inner", "a condition within another is not looked at")

enum {
    RONDO__SIM_MUTATION_NONE = 0,
#define RONDO_X(name, text, sentence) RONDO__SIM_MUTATION_##name,
    RONDO__SIM_MUTATIONS(RONDO_X)
#undef RONDO_X
        RONDO__SIM_MUTATION_END,
    RONDO__SIM_MUTATION_LAST = RONDO__SIM_MUTATION_END - 1
};

typedef struct rondo__sim_mutation {
    const char *name, *sentence;
} rondo__sim_mutation;

/* number: from 1 to RONDO__SIM_MUTATION_LAST. */
const rondo__sim_mutation *rondo__sim_mutation_at(int number);

/* Over the tables of fault.c, for a device with a mutation. */
extern const rondo_device_table rondo__sim_mutant_device_table;
/* What the mutation remembers; nothing without one. */
rondo_status rondo__sim_mutant_open(rondo__sim_device *device);
void rondo__sim_mutant_close(rondo__sim_device *device);

#endif
