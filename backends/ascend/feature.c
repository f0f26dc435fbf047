/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device can do of what not every library, driver or chip can. The library lacks a symbol of the group, or a call has
 * answered 207000: then the feature is off, nothing else is, and who looks at the log finds which call, and why. */
#include <stdio.h>

#include "ascend.h"

typedef struct feature_about {
    const char *name;   /* null: nobody misses it */
    const char *unused; /* why Rondo has no use for it; null: it has */
} feature_about;

static const feature_about features[RONDO__ASCEND_FEATURE_COUNT] = {
    [RONDO__ASCEND_GROUP_reference] = {"counted end of the library", NULL},
    [RONDO__ASCEND_GROUP_about] = {"name of the chip", NULL},
    [RONDO__ASCEND_GROUP_pointer] = {"checks of a copy's direction", NULL},
    [RONDO__ASCEND_GROUP_failure] = {"streams that stop at a failure", NULL},
    [RONDO__ASCEND_GROUP_limits] = {"count of what is left of streams", NULL},
    [RONDO__ASCEND_GROUP_ids] = {"count of what is left of events", NULL},
    [RONDO__ASCEND_GROUP_capture] = {"graphs of its own", NULL},
    [RONDO__ASCEND_GROUP_taskgroup] = {"updates of captured kernels", NULL},
    [RONDO__ASCEND_GROUP_external] = {"events outside of graphs in its own", NULL},
    [RONDO__ASCEND_GROUP_edit] = {"task edit",
                                  "it changes kernels and no copies, as task groups do, which let runs go on"},
    [RONDO__ASCEND_GROUP_condition] = {"conditions in its own graphs",
                                       "they read a cell of the driver's, not the caller's"},
    [RONDO__ASCEND_GROUP_name] = {"names of its own graphs", NULL},
    [RONDO__ASCEND_GROUP_json] = {"pictures of its own graphs", NULL},
    [RONDO__ASCEND_THREAD_MODE] = {"capture modes of threads", NULL},
    [RONDO__ASCEND_HOST_FUNCTIONS] = {"host functions", NULL},
    [RONDO__ASCEND_HOST_KERNELS] = {"kernels of the host, and catalogues of them", NULL},
    [RONDO__ASCEND_PINNED] = {"pinned host memory", NULL},
    [RONDO__ASCEND_MEMORY_INFO] = {"size of its memory", NULL}};

static void feature_log(const rondo__ascend_device *device, rondo_log_level level, int feature, const char *why) {
    char line[3 * RONDO__ASCEND_TEXT];
    (void)snprintf(line, sizeof line, "ascend:%d: no %s: %s", (int)device->index, features[feature].name, why);
    device->host->log(device->host->host, level, line);
}

void rondo__ascend_why_not(rondo__ascend_device *device, int feature, char *text, size_t capacity) {
    const char *before = atomic_load(&device->off_why[feature]);
    if (before) (void)snprintf(text, capacity, "%s, it said before", before);
    else if (feature < RONDO__ASCEND_GROUP_COUNT && device->library->lacks[feature])
        (void)snprintf(text, capacity, "%s has no %s", device->library->path, device->library->lacks[feature]);
    else (void)snprintf(text, capacity, "it is there");
}

/* True the first time. */
static bool feature_untold(rondo__ascend_device *device, int feature) {
    unsigned bit = 1u << feature;
    return !(atomic_fetch_or(&device->told, bit) & bit);
}

bool rondo__ascend_can(rondo__ascend_device *device, int feature) {
    bool has = feature >= RONDO__ASCEND_GROUP_COUNT || rondo__ascend_has(device->library, feature);
    if (has && !atomic_load_explicit(&device->off_why[feature], memory_order_relaxed)) return true;
    if (feature_untold(device, feature)) {
        char why[RONDO__ASCEND_TEXT];
        rondo__ascend_why_not(device, feature, why, sizeof why);
        feature_log(device, RONDO_LOG_DEBUG, feature, why);
    }
    return false;
}

void rondo__ascend_switch_off(rondo__ascend_device *device, int feature, const char *why, const char *words) {
    char text[2 * RONDO__ASCEND_TEXT];
    const char *nothing = NULL;
    if (!atomic_compare_exchange_strong(&device->off_why[feature], &nothing, why)) return;
    (void)feature_untold(device, feature);
    (void)snprintf(text, sizeof text, "%s%s%s", why, words ? ": " : "", words ? words : "");
    feature_log(device, RONDO_LOG_INFO, feature, text);
}

bool rondo__ascend_refused_at(rondo__ascend_device *device, int feature, const char *why, int error) {
    char words[RONDO__ASCEND_TEXT];
    if (error != RONDO__ASCEND_NOT_SUPPORTED) return false;
    rondo__ascend_words(device->library, error, words, sizeof words);
    rondo__ascend_switch_off(device, feature, why, words);
    return true;
}

rondo_status rondo__ascend_refusal(rondo__ascend_device *device, int feature, const char *what) {
    char why[RONDO__ASCEND_TEXT];
    rondo__ascend_why_not(device, feature, why, sizeof why);
    return RONDO_PLUGIN_FAIL(device->host, UNSUPPORTED, DRIVER, "%s: ascend:%d has no %s: %s", what, (int)device->index,
                             features[feature].name, why);
}

void rondo__ascend_tell(const rondo__ascend_device *device) {
    for (int i = 0; i < RONDO__ASCEND_GROUP_COUNT; i++) {
        const feature_about *about = &features[i];
        char line[RONDO__ASCEND_TEXT];
        bool has = rondo__ascend_has(device->library, i);
        if (!about->name || (has && !about->unused)) continue;
        if (has) {
            (void)snprintf(line, sizeof line, "ascend:%d: %s: not used: %s", (int)device->index, about->name,
                           about->unused);
            device->host->log(device->host->host, RONDO_LOG_INFO, line);
            continue;
        }
        (void)snprintf(line, sizeof line, "%s has no %s", device->library->path, device->library->lacks[i]);
        feature_log(device, RONDO_LOG_INFO, i, line);
    }
}
