/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may call what while something captures. Three values decide: the strictest capture of the context, the strictest
 * that the calling thread began, and the mode that the thread chose for itself. */
#include "sim.h"

enum { MODE_NONE = 3 };

static bool mode_captures(const sim_model *model) {
    return !model->built && (model->status == SIM_STATUS_CAPTURING || model->status == SIM_STATUS_INVALIDATED) &&
           model->origin;
}

static int mode_strictest(const sim_context *context, bool mine) {
    int strictest = MODE_NONE;
    for (const sim_model *model = context->models; model; model = model->next)
        if (mode_captures(model) && (!mine || model->thread == sim_self_number()) && (int)model->mode < strictest)
            strictest = (int)model->mode;
    return strictest;
}

/* Of the thread's own captures, in whichever context. */
static int mode_of_thread(void) {
    int strictest = MODE_NONE;
    for (const sim_context *context = sim.contexts; context; context = context->next) {
        int here = mode_strictest(context, true);
        if (here < strictest) strictest = here;
    }
    return strictest;
}

bool sim_context_captures(const sim_context *context) { return mode_strictest(context, false) != MODE_NONE; }

static bool mode_allows(int context, int thread, int exchange) {
    if (context == MODE_NONE || exchange == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return true;
    if (exchange == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        return context != ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && thread != ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
    return thread != ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && thread != ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
}

aclError sim_mode_check(sim_context *context, aclError error, const char *what) {
    static const char *const names[] = {"GLOBAL", "THREAD_LOCAL", "RELAXED", "none"};
    int strictest = mode_strictest(context, false), mine = mode_of_thread();
    if (mode_allows(strictest, mine, (int)sim_self()->exchange)) return ACL_SUCCESS;
    sim_illegal(context, error);
    for (const sim_context *other = sim.contexts; other && sim.settings.strict; other = other->next)
        for (sim_model *model = other->models; model; model = model->next)
            if (model->thread == sim_self_number()) sim_invalidate(model, error);
    return sim_fail(
        error,
        "%s is unsafe while something captures: strictest capture of the context %s, of this thread %s; this "
        "thread's own mode %s (aclmdlRICaptureThreadExchangeMode)",
        what, names[strictest], names[mine], names[sim_self()->exchange]);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode) {
    SIM_BEGIN(aclmdlRICaptureThreadExchangeMode);
    if (!mode) return sim_fail(ACL_ERROR_INVALID_PARAM, "mode is null");
    if ((unsigned)*mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no capture mode (0 to 2 are)", (int)*mode);
    aclmdlRICaptureMode before = sim_self()->exchange;
    sim_self()->exchange = *mode;
    *mode = before;
    return ACL_SUCCESS;
}
