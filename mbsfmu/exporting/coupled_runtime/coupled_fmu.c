/* The FMU around coupled FMUs: what `unit.h` asks of every FMU. Its values are numbers, its events those of components,
 * which happen inside its steps. */

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coupled_sizes.h"
#include "coupled_system.h"
#include "identity.h"
#include "platform.h"
#include "unit.h"

enum { RESOLVED_STEP = 16 };
static const double MOST_STEPS = 1e9, OVERSHOOT = 1e-3; /* as mbsfmu/base/times.py has them */

enum Mode { INSTANTIATED, INITIALIZING, STEPPING, AT_EVENTS, ENDED };

struct Instance {
    Logger logger;
    void *environment;
    System *system;
    char *resources;
    enum Mode mode;
    Status last_step;
    double start, stop;
    int has_stop;
};

static void report(const Instance *instance, Status status, const char *format, ...)
{
    char sentence[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    instance->logger(instance->environment, status, sentence);
}

#define REFUSE(...) (report(instance, REFUSED, __VA_ARGS__), REFUSED)
#define DO(call) ((call) ? DONE : REFUSE("%s", reason_of(instance->system)))
#define NEED_SYSTEM \
    if (!is_whole(instance->system)) return REFUSE("%s", reason_of(instance->system))

static void warn(void *instance, const char *sentence, int is_remark)
{
    report(instance, is_remark ? NOTED : DONE_WITH_WARNING, "%s", sentence);
}

/* -- life ------------------------------------------------------------------------------------------------------------ */

static void destroy(Instance *instance)
{
    destroy_system(instance->system);
    free(instance->resources);
    free(instance);
}

static Instance *create(Logger logger, void *environment, const char *resources)
{
    Instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return NULL;
    size_t size = resources ? strlen(resources) + 1 : 1;
    instance->logger = logger;
    instance->environment = environment;
    instance->resources = calloc(size, 1);
    if (instance->resources && resources)
        memcpy(instance->resources, resources, size);
    instance->system = create_system(warn, instance, instance->resources);
    if (instance->system && is_whole(instance->system))
        return instance;
    if (instance->system)
        report(instance, REFUSED, "%s", reason_of(instance->system));
    destroy(instance);
    return NULL;
}

static void reset(Instance *instance)
{
    System *fresh = NULL;
    destroy_system(instance->system); /* before: some FMUs can be there only once */
    fresh = create_system(warn, instance, instance->resources);
    instance->system = fresh;
    instance->mode = INSTANTIATED;
    instance->has_stop = 0;
    instance->start = 0.0;
    instance->last_step = DONE;
    if (fresh && !is_whole(fresh))
        report(instance, REFUSED, "%s", reason_of(fresh));
}

static Status set_up(Instance *instance, double start, const double *stop, const double *tolerance)
{
    (void)tolerance; /* components keep those of the export */
    if (instance->mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!isfinite(start)) return REFUSE("the start time is %g s; it must be a finite number", start);
    if (stop && !(isfinite(*stop) && *stop > start))
        return REFUSE("the stop time is %g s; it must be a finite number above the start time, %g s", *stop, start);
    instance->start = start;
    instance->has_stop = stop != NULL;
    instance->stop = stop ? *stop : 0.0;
    return DONE;
}

static Status enter_initialization(Instance *instance)
{
    if (instance->mode != INSTANTIATED) return REFUSE("initialization mode is entered from the start only");
    NEED_SYSTEM;
    if (!begin_initialization(instance->system, instance->start, instance->has_stop ? &instance->stop : NULL))
        return REFUSE("%s", reason_of(instance->system));
    instance->mode = INITIALIZING;
    return DONE;
}

static Status exit_initialization(Instance *instance)
{
    if (instance->mode != INITIALIZING) return REFUSE("initialization mode was not entered");
    if (!end_initialization(instance->system)) return REFUSE("%s", reason_of(instance->system));
    instance->mode = STEPPING;
    return DONE;
}

static Status enter_events(Instance *instance)
{
    if (instance->mode != STEPPING) return REFUSE("event mode is entered from step mode only");
    instance->mode = AT_EVENTS;
    return DONE;
}

static Status exit_events(Instance *instance)
{
    if (instance->mode != AT_EVENTS) return REFUSE("event mode was not entered");
    instance->mode = STEPPING;
    return DONE;
}

static Status pass_events(Instance *instance, int *some, double *next)
{
    if (instance->mode != AT_EVENTS) return REFUSE("events happen in event mode only");
    *some = 0;
    *next = DBL_MAX;
    return DONE;
}

static Status terminate(Instance *instance)
{
    if (instance->mode != STEPPING && instance->mode != AT_EVENTS) return REFUSE("only a running unit can be terminated");
    instance->mode = ENDED;
    return DO(terminate_system(instance->system));
}

/* -- values ---------------------------------------------------------------------------------------------------------- */

static Status get(Instance *instance, const unsigned *variables, size_t count, double *values)
{
    NEED_SYSTEM;
    for (size_t k = 0; k < count; k++)
        if (!get_value(instance->system, variables[k], &values[k])) return REFUSE("%s", reason_of(instance->system));
    return DONE;
}

static Status set(Instance *instance, const unsigned *variables, size_t count, const double *values)
{
    NEED_SYSTEM;
    if (instance->mode == ENDED) return REFUSE("a terminated FMU takes no values");
    for (size_t k = 0; k < count; k++)
        if (!set_value(instance->system, variables[k], values[k])) return REFUSE("%s", reason_of(instance->system));
    return DONE;
}

static Status set_slopes(Instance *instance, const unsigned *inputs, size_t count, const double *slopes)
{
    (void)inputs, (void)slopes;
    return count == 0 ? DONE : REFUSE("this FMU holds its inputs over a step; it takes no derivatives of them");
}

static Status lead(Instance *instance, const unsigned *inputs, size_t count, const double *values, double end)
{
    (void)inputs, (void)count, (void)values, (void)end;
    return REFUSE("this FMU holds its inputs over a step; it has no intermediate update");
}

static Status get_rates(Instance *instance, const unsigned *outputs, size_t count, double *rates)
{
    (void)outputs, (void)rates;
    return count == 0 ? DONE : REFUSE("this FMU gives no derivatives of its outputs by time");
}

static Status get_derivatives(Instance *instance, const unsigned *unknowns, size_t unknown_count, const unsigned *knowns,
                              size_t known_count, const double *direction, double *values)
{
    (void)unknowns, (void)unknown_count, (void)knowns, (void)known_count, (void)direction, (void)values;
    return REFUSE("this FMU gives no directional derivatives");
}

/* -- steps ----------------------------------------------------------------------------------------------------------- */

static double larger(double a, double b) { return a > b ? a : b; }

static Status step_to(Instance *instance, double time, double length)
{
    const double now = time_of_system(instance->system), end = time + length;
    const double resolution = DBL_EPSILON * larger(fabs(time), fabs(end));
    const double same = 1e-6 * length + 4.0 * resolution;
    if (instance->mode == AT_EVENTS) return REFUSE("a step needs an FMU that is not in event mode");
    if (instance->mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    if (!isfinite(time)) return REFUSE("the step begins at t = %g s; it must be a finite number", time);
    if (!(length > 0.0) || !isfinite(length)) return REFUSE("the step is %g s; it must be positive and finite", length);
    if (length < larger(RESOLVED_STEP * resolution, 1e-100))
        return REFUSE("the step of %g s is lost in the resolution of time at t = %g s", length, time);
    if (length > MOST_STEPS * step_of_system(instance->system))
        return REFUSE("the step of %g s is more than %g communication steps", length, MOST_STEPS);
    if (!(fabs(time - now) <= same))
        return REFUSE("the step begins at t = %.12g s, but the FMU is at %.12g s", time, now);
    if (instance->has_stop && end > instance->stop + OVERSHOOT * length)
        return REFUSE("the step ends at %.12g s, after the stop time of %.12g s", end, instance->stop);
    return DO(advance_system(instance->system, end));
}

static Status step(Instance *instance, double time, double length, const Wishes *wishes)
{
    (void)wishes;
    NEED_SYSTEM;
    return instance->last_step = step_to(instance, time, length);
}

static double time_of(const Instance *instance) { return instance->system ? time_of_system(instance->system) : 0.0; }

static Status last_step(const Instance *instance) { return instance->last_step; }

static int is_at_event(const Instance *instance)
{
    (void)instance;
    return 0;
}

#if defined(LINKED_COMPONENTS)
/* Hear that values were set that jump; FMI 2.0 has no event mode, by which a page could say it. */
EXPORT void NAMED(mbsfmu_jump)(Instance *instance) { restart_history(instance->system); }
#endif

/* -- states ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    void *of_system;
    enum Mode mode;
} Kept;

static Status save(Instance *instance, void **saved)
{
    Kept *kept = *saved;
    NEED_SYSTEM;
    if (!SAVES_STATE) return REFUSE("not all components can save their states");
    if (!kept) *saved = kept = calloc(1, sizeof *kept);
    if (!kept) return REFUSE("there is no memory for a saved state");
    kept->mode = instance->mode;
    return DO(save_system(instance->system, &kept->of_system));
}

static Status restore(Instance *instance, const void *saved)
{
    const Kept *kept = saved;
    NEED_SYSTEM;
    if (!restore_system(instance->system, kept->of_system)) return REFUSE("%s", reason_of(instance->system));
    instance->mode = kept->mode;
    return DONE;
}

static void release(void *saved)
{
    Kept *kept = saved;
    if (!kept) return;
    release_saved(kept->of_system);
    free(kept);
}

static Status serialize(Instance *instance, const void *saved, char *bytes, size_t size)
{
    (void)saved, (void)bytes, (void)size;
    return REFUSE("states of coupled FMUs are not turned into bytes");
}

static Status deserialize(Instance *instance, const char *bytes, size_t size, void **saved)
{
    (void)bytes, (void)size, (void)saved;
    return REFUSE("states of coupled FMUs are not turned into bytes");
}

const UnitFunctions fmu_functions = {
    .identity = IDENTITY,
    .variables = VARIABLES,
    .saved_size = 0,
    .create = create,
    .destroy = destroy,
    .reset = reset,
    .set_up = set_up,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .enter_events = enter_events,
    .exit_events = exit_events,
    .terminate = terminate,
    .get = get,
    .set = set,
    .set_slopes = set_slopes,
    .lead = lead,
    .get_rates = get_rates,
    .get_derivatives = get_derivatives,
    .step = step,
    .time = time_of,
    .last_step = last_step,
    .is_at_event = is_at_event,
    .pass_events = pass_events,
    .save = save,
    .restore = restore,
    .release = release,
    .serialize = serialize,
    .deserialize = deserialize,
};
