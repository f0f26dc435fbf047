/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory there is, and whose. Device memory is memory of the process; fresh bytes are 0xCD, freed ones 0xDB, and what
 * was freed lately is kept, so that who still uses it is found out. */
#include "sim.h"

#define MEMORY_KEPT 1024
#define MEMORY_KEPT_BYTES (64u << 20)

static sim_block *memory_blocks; /* by address; freed ones among them */
static size_t memory_count, memory_capacity;
static uintptr_t memory_kept[MEMORY_KEPT]; /* freed ones, a ring */
static size_t memory_first, memory_kept_count, memory_kept_bytes;
static uint64_t memory_frees, memory_bytes[5];

/* Where the first block behind the address is. */
static size_t memory_above(uintptr_t address) {
    size_t low = 0, high = memory_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory_blocks[middle].base <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

const sim_block *sim_memory_find(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    size_t above = memory_above(address);
    if (!above) return NULL;
    const sim_block *block = &memory_blocks[above - 1];
    return address - block->base < block->size ? block : NULL;
}

uint64_t sim_memory_frees(void) { return memory_frees; }
uint64_t sim_memory_bytes(uint32_t kind) { return memory_bytes[kind]; }
uint64_t sim_memory_blocks(void) { return memory_count - memory_kept_count; }

/* A block that has a byte in [base, base + bytes), or null. */
static const sim_block *memory_overlap(uintptr_t base, size_t bytes) {
    const sim_block *block = sim_memory_find((const void *)base);
    size_t above = memory_above(base);
    if (block || above == memory_count || memory_blocks[above].base - base >= bytes) return block;
    return &memory_blocks[above];
}

static aclError memory_insert(sim_block block) {
    if (!sim_grow((void **)&memory_blocks, &memory_capacity, memory_count + 1, sizeof *memory_blocks))
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for the registry of memory");
    size_t at = memory_above(block.base);
    memmove(memory_blocks + at + 1, memory_blocks + at, (memory_count - at) * sizeof *memory_blocks);
    memory_blocks[at] = block;
    memory_blocks[at].number = ++sim.numbers;
    memory_count++;
    memory_bytes[block.kind] += block.size;
    return ACL_SUCCESS;
}

static void memory_remove(uintptr_t base) {
    size_t at = memory_above(base) - 1;
    memory_bytes[memory_blocks[at].kind] -= memory_blocks[at].size;
    memmove(memory_blocks + at, memory_blocks + at + 1, (memory_count - at - 1) * sizeof *memory_blocks);
    memory_count--;
}

static void memory_forget_oldest(void) {
    uintptr_t base = memory_kept[memory_first];
    sim_block block = memory_blocks[memory_above(base) - 1];
    memory_first = (memory_first + 1) % MEMORY_KEPT;
    memory_kept_count--;
    memory_kept_bytes -= block.size;
    memory_remove(base);
    free(block.raw);
}

__attribute__((destructor)) static void memory_end(void) {
    while (memory_kept_count) memory_forget_oldest();
}

aclError sim_memory_take(int32_t device, size_t size, uint32_t kind, void **out_pointer) {
    bool on_device = kind == SIM_MEMORY_DEVICE;
    if (!size) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes are none");
    if (size > SIZE_MAX / 2 || (on_device && (int64_t)size > sim.settings.memory - sim.devices[device].memory))
        return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%zu bytes of device %d: %lld of %lld are in use", size, device,
                        (long long)sim.devices[device].memory, (long long)sim.settings.memory);
    /* Its base is at 64 bytes, and on purpose at no more. */
    size_t bytes = (size + (on_device ? 63u : 31u)) & ~(size_t)31u;
    sim_count_one(SIM_CALL_alloc);
    aclError error = 0;
    void *raw =
        sim_fault_due(SIM_CALL_alloc, &error) ? NULL : aligned_alloc(128, ((bytes + 64u) + 127u) & ~(size_t)127u);
    if (!raw)
        return sim_fail(on_device ? ACL_ERROR_RT_MEMORY_ALLOCATION : ACL_ERROR_BAD_ALLOC, "no memory for %zu bytes",
                        size);
    sim_block block = {(uintptr_t)raw + 64u, bytes, kind, device, raw, 0, false};
    /* Registered memory that its owner freed without a word: the C library gives it again. */
    const sim_block *old = memory_overlap((uintptr_t)raw, bytes + 64u);
    for (; old && old->kind == SIM_MEMORY_REGISTERED; old = memory_overlap((uintptr_t)raw, bytes + 64u))
        memory_remove(old->base);
    error = memory_insert(block);
    if (error) {
        free(raw);
        return error;
    }
    if (on_device) sim.devices[device].memory += (int64_t)bytes;
    memset((char *)raw + 64, 0xCD, bytes);
    *out_pointer = (char *)raw + 64;
    return ACL_SUCCESS;
}

static const char *memory_name(uint32_t kind) {
    static const char *const names[] = {"pageable host memory", "device memory", "pinned host memory",
                                        "registered host memory", "memory that was freed"};
    return names[kind];
}

static aclError memory_is(const void *pointer, uint32_t kind, const sim_block **out_block) {
    const sim_block *block = sim_memory_find(pointer);
    if (block && block->kind == SIM_MEMORY_FREED)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p was freed before", pointer);
    if (!block || block->kind != kind || block->base != (uintptr_t)pointer)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no %s that was allocated (%s%s)", pointer, memory_name(kind),
                        block && block->base != (uintptr_t)pointer ? "in the middle of " : "",
                        memory_name(block ? block->kind : SIM_MEMORY_NONE));
    *out_block = block;
    return ACL_SUCCESS;
}

aclError sim_memory_give(void *pointer, uint32_t kind) {
    const sim_block *found = NULL;
    SIM_CHECK(memory_is(pointer, kind, &found));
    sim_block *block = &memory_blocks[found - memory_blocks];
    memory_frees++;
    if (kind == SIM_MEMORY_DEVICE) sim.devices[block->device].memory -= (int64_t)block->size;
    memset(pointer, 0xDB, block->size);
    memory_bytes[kind] -= block->size;
    memory_bytes[SIM_MEMORY_FREED] += block->size;
    block->kind = SIM_MEMORY_FREED;
    while (memory_kept_count == MEMORY_KEPT ||
           (memory_kept_count && memory_kept_bytes + block->size > MEMORY_KEPT_BYTES)) {
        uintptr_t base = (uintptr_t)pointer;
        memory_forget_oldest();
        block = &memory_blocks[memory_above(base) - 1];
    }
    memory_kept[(memory_first + memory_kept_count++) % MEMORY_KEPT] = block->base;
    memory_kept_bytes += block->size;
    return ACL_SUCCESS;
}

void sim_memory_release(int32_t device, uint64_t number) {
    for (size_t i = 0; i < memory_count;) {
        sim_block block = memory_blocks[i];
        bool gone = block.kind == SIM_MEMORY_DEVICE && block.device == device && block.number <= number;
        if (gone) (void)sim_memory_give((void *)block.base, SIM_MEMORY_DEVICE);
        i = gone ? 0 : i + 1;
    }
}

bool sim_memory_bad(const void *address, size_t bytes, char *text, size_t capacity) {
    const sim_block *block = sim_memory_find(address);
    if (!block) return false;
    size_t left = block->size - (size_t)((uintptr_t)address - block->base);
    if (block->kind == SIM_MEMORY_FREED) (void)snprintf(text, capacity, "%p lies in memory that was freed", address);
    else if (bytes > left)
        (void)snprintf(text, capacity, "%zu bytes from %p are more than the %zu that its allocation has", bytes,
                       address, left);
    else return false;
    return true;
}

bool sim_memory_gone(const void *address, size_t bytes, char *text, size_t capacity) {
    if (sim_memory_find(address)) return sim_memory_bad(address, bytes, text, capacity);
    (void)snprintf(text, capacity, "%p lies in memory that was freed", address);
    return true;
}

uint64_t sim_memory_number(const void *address) {
    const sim_block *block = sim_memory_find(address);
    return block && block->kind != SIM_MEMORY_FREED ? block->number : 0;
}

void sim_memory_own(const void *pointer) {
    const sim_block *block = sim_memory_find(pointer);
    if (block) memory_blocks[block - memory_blocks].owned = true;
}

bool sim_memory_stale_word(const void *arguments, size_t size, uint64_t *out_word) {
    for (size_t i = 0; i + sizeof(uint64_t) <= size && memory_kept_count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, (const char *)arguments + i, sizeof word);
        const sim_block *block = sim_memory_find((const void *)(uintptr_t)word);
        if (!block || block->kind != SIM_MEMORY_FREED) continue;
        *out_word = word;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------- the interface */

static aclError memory_allocate(void **out, size_t size, aclrtMemMallocPolicy policy) {
    if (!out) return sim_fail(ACL_ERROR_INVALID_PARAM, "devPtr is null");
    if (policy < 0 || (policy > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P && policy != ACL_MEM_TYPE_LOW_BAND_WIDTH &&
                       policy != ACL_MEM_TYPE_HIGH_BAND_WIDTH && policy != ACL_MEM_ACCESS_USER_SPACE_READONLY))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no one policy", (int)policy);
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) error = sim_memory_take(context->device, size, SIM_MEMORY_DEVICE, out);
    return sim_leave(error);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    SIM_BEGIN(aclrtMalloc);
    return memory_allocate(devPtr, size, policy);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    SIM_BEGIN(aclrtMallocWithCfg);
    (void)cfg;
    return memory_allocate(devPtr, size, policy);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    SIM_BEGIN(aclrtMallocAlign32);
    return memory_allocate(devPtr, size, policy);
}

static aclError memory_free(void *pointer) {
    sim_context *context = NULL;
    if (!pointer) return sim_fail(ACL_ERROR_INVALID_PARAM, "devPtr is null");
    SIM_CHECK(sim_current(&context));
    const sim_block *block = sim_memory_find(pointer);
    if (block && block->kind == SIM_MEMORY_DEVICE && block->device != context->device)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is memory of device %d, the current one is %d", pointer,
                        block->device, context->device);
    if (block && block->kind == SIM_MEMORY_DEVICE && block->owned)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is the cell of a condition: it goes with its graph", pointer);
    return sim_memory_give(pointer, SIM_MEMORY_DEVICE);
}

aclError aclrtFree(void *devPtr) {
    SIM_BEGIN(aclrtFree);
    sim_lock();
    return sim_leave(memory_free(devPtr));
}

aclError aclrtFreeWithDevSync(void *devPtr) {
    SIM_BEGIN(aclrtFreeWithDevSync);
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) error = sim_context_not_captured(context, "waiting for its work");
    if (!error) error = sim_context_wait(context, -1, false);
    return sim_leave(error ? error : memory_free(devPtr));
}

static aclError memory_host(void **out, uint64_t size) {
    if (!out) return sim_fail(ACL_ERROR_INVALID_PARAM, "hostPtr is null");
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) error = sim_memory_take(context->device, (size_t)size, SIM_MEMORY_PINNED, out);
    return sim_leave(error);
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
    SIM_BEGIN(aclrtMallocHost);
    return memory_host(hostPtr, size);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg) {
    SIM_BEGIN(aclrtMallocHostWithCfg);
    (void)cfg;
    return memory_host(ptr, size);
}

aclError aclrtFreeHost(void *hostPtr) {
    SIM_BEGIN(aclrtFreeHost);
    if (!hostPtr) return sim_fail(ACL_ERROR_INVALID_PARAM, "hostPtr is null");
    sim_lock();
    return sim_leave(sim_memory_give(hostPtr, SIM_MEMORY_PINNED));
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag) {
    SIM_BEGIN(aclrtHostRegisterV2);
    (void)flag;
    if (!ptr) return sim_fail(ACL_ERROR_INVALID_PARAM, "ptr is null");
    if (!size) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes are none");
    if (size > UINTPTR_MAX - (uintptr_t)ptr)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%llu bytes from %p reach beyond all memory",
                        (unsigned long long)size, ptr);
    sim_lock();
    const sim_block *there = memory_overlap((uintptr_t)ptr, (size_t)size);
    if (there)
        return sim_leave(
            sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%s is at %p already", memory_name(there->kind), (void *)there->base));
    return sim_leave(
        memory_insert((sim_block){(uintptr_t)ptr, (size_t)size, SIM_MEMORY_REGISTERED, 0, NULL, 0, false}));
}

aclError aclrtHostUnregister(void *ptr) {
    SIM_BEGIN(aclrtHostUnregister);
    if (!ptr) return sim_fail(ACL_ERROR_INVALID_PARAM, "ptr is null");
    sim_lock();
    const sim_block *block = NULL;
    aclError error = memory_is(ptr, SIM_MEMORY_REGISTERED, &block);
    if (!error) memory_remove(block->base);
    memory_frees += !error;
    return sim_leave(error);
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
    SIM_BEGIN(aclrtPointerGetAttributes);
    if (!ptr || !attributes) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    const sim_block *block = sim_memory_find(ptr);
    memset(attributes, 0, sizeof *attributes);
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    attributes->pageSize = 4096;
    if (block && block->kind == SIM_MEMORY_DEVICE) {
        attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        attributes->location.id = (uint32_t)block->device;
        attributes->pageSize = 2u << 20;
    } else if (block && block->kind != SIM_MEMORY_FREED) attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
    return sim_leave(ACL_SUCCESS);
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free_bytes, size_t *total) {
    SIM_BEGIN(aclrtGetMemInfo);
    if (!free_bytes || !total) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if (attr > ACL_HBM_MEM_NORMAL) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no kind of memory", (int)attr);
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) {
        *total = (size_t)sim.settings.memory;
        *free_bytes = (size_t)(sim.settings.memory - sim.devices[context->device].memory);
    }
    return sim_leave(error);
}
