/* The FMU around coupled FMUs: what `unit.h` asks of every FMU. Its values are numbers, its events those of components,
 * which happen inside its steps. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coupled_sizes.h"
#include "coupled_system.h"
#include "identity.h"
#include "host_checks.h"
#include "platform.h"
#include "unit.h"

enum Mode { INSTANTIATED, INITIALIZING, STEPPING, AT_EVENTS, ENDED };

/* What an importer has made of an instance. */
struct Course {
    enum Mode mode;
    Status last_step;
    double start, stop; /* in s; infinite where there is no stop */
};

struct Instance {
    Logger logger;
    void *environment;
    System *system;
    char *resources;
    struct Course course;
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
    if (!is_sound(instance->system)) return REFUSE("%s", reason_of(instance->system))

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

static void begin_course(Instance *instance)
{
    instance->course = (struct Course){.mode = INSTANTIATED, .last_step = DONE, .stop = HUGE_VAL};
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
    begin_course(instance);
    instance->system = create_system(warn, instance, instance->resources);
    if (is_whole(instance->system))
        return instance;
    report(instance, REFUSED, "%s", reason_of(instance->system));
    destroy(instance);
    return NULL;
}

static Status reset(Instance *instance)
{
    destroy_system(instance->system); /* before: some FMUs can be there only once */
    instance->system = create_system(warn, instance, instance->resources);
    begin_course(instance);
    NEED_SYSTEM;
    return DONE;
}

static Status set_up(Instance *instance, double start, const double *stop, const double *tolerance)
{
    Reason reason;
    if (instance->course.mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!check_experiment(&reason, start, stop, tolerance)) return REFUSE("%s", reason.text);
    instance->course.start = start;
    instance->course.stop = stop ? *stop : HUGE_VAL;
    return DONE; /* components keep the tolerances of the export */
}

/* The stop time; NULL where there is none. */
static const double *stop_of(const Instance *instance)
{
    return isfinite(instance->course.stop) ? &instance->course.stop : NULL;
}

static Status enter_initialization(Instance *instance)
{
    if (instance->course.mode != INSTANTIATED) return REFUSE("initialization mode is entered from the start only");
    NEED_SYSTEM;
    if (!begin_initialization(instance->system, instance->course.start, stop_of(instance)))
        return REFUSE("%s", reason_of(instance->system));
    instance->course.mode = INITIALIZING;
    return DONE;
}

static Status exit_initialization(Instance *instance)
{
    if (instance->course.mode != INITIALIZING) return REFUSE("initialization mode was not entered");
    NEED_SYSTEM;
    if (!end_initialization(instance->system)) return REFUSE("%s", reason_of(instance->system));
    instance->course.mode = STEPPING;
    return DONE;
}

static Status enter_events(Instance *instance)
{
    if (instance->course.mode != STEPPING) return REFUSE("event mode is entered from step mode only");
    instance->course.mode = AT_EVENTS;
    return DONE;
}

static Status exit_events(Instance *instance)
{
    if (instance->course.mode != AT_EVENTS) return REFUSE("event mode was not entered");
    instance->course.mode = STEPPING;
    return DONE;
}

static Status pass_events(Instance *instance, int *some, double *next)
{
    if (instance->course.mode != AT_EVENTS) return REFUSE("events happen in event mode only");
    *some = 0;
    *next = DBL_MAX;
    return DONE;
}

static Status terminate(Instance *instance)
{
    if (instance->course.mode != STEPPING && instance->course.mode != AT_EVENTS) return REFUSE("only a running unit can be terminated");
    instance->course.mode = ENDED;
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
    if (instance->course.mode == ENDED) return REFUSE("the FMU is terminated; nothing can be set");
    if (instance->course.mode == AT_EVENTS && count > 0) restart_history(instance->system);
    return DO(set_values(instance->system, variables, count, values));
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

static Status step_to(Instance *instance, double time, double length)
{
    System *system = instance->system;
    Reason reason;
    if (instance->course.mode == AT_EVENTS) return REFUSE("a step needs an FMU that is not in event mode");
    if (instance->course.mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    if (!check_step(&reason, time_of_system(system), time, length, step_of_system(system), stop_of(instance)))
        return REFUSE("%s", reason.text);
    return DO(advance_system(system, time + length));
}

static Status step(Instance *instance, double time, double length, const Wishes *wishes)
{
    (void)wishes;
    NEED_SYSTEM;
    return instance->course.last_step = step_to(instance, time, length);
}

static double time_of(const Instance *instance) { return instance->system ? time_of_system(instance->system) : 0.0; }

static Status last_step(const Instance *instance) { return instance->course.last_step; }

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
    SavedHead head;
    void *of_system;
    struct Course course;
} Kept;

#define REFUSE_STATE(why) return REFUSE("the saved state is refused: %s", why)

static void release(void *saved)
{
    Kept *kept = saved;
    if (!kept || objection_to_head(&kept->head, sizeof *kept)) return;
    release_saved(kept->of_system);
    free(kept);
}

/* Save the state; one that is made for it and cannot be filled is gone again. */
static Status save(Instance *instance, void **saved)
{
    NEED_SYSTEM;
    if (!SAVES_STATE) return REFUSE("not all components can save their states");
    const char *why = *saved ? objection_to_head(*saved, sizeof(Kept)) : NULL;
    if (why) REFUSE_STATE(why);
    Kept *kept = *saved ? *saved : calloc(1, sizeof *kept);
    if (!kept) return REFUSE("there is no memory for a saved state");
    write_head(&kept->head, sizeof *kept);
    kept->course = instance->course;
    if (save_system(instance->system, &kept->of_system)) {
        *saved = kept;
        return DONE;
    }
    if (!*saved) release(kept);
    return REFUSE("%s", reason_of(instance->system));
}

static Status restore(Instance *instance, const void *saved)
{
    const Kept *kept = saved;
    const char *why = objection_to_head(&kept->head, sizeof *kept);
    if (why) REFUSE_STATE(why);
    if (!is_whole(instance->system) || !restore_system(instance->system, kept->of_system))
        return REFUSE("%s", reason_of(instance->system));
    instance->course = kept->course;
    return DONE;
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
