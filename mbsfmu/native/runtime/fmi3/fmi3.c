/* FMI 3.0: its words for what a unit does. */
#include <float.h>
#include <math.h>

#include "fmi3.h"

typedef fmi3Status HostStatus;
typedef fmi3LogMessageCallback HostLogger;

#define CALL_LOGGER(component, status, category, text) \
    (component)->logger((component)->environment, status, category, text)
#define MEANING "#" /* a text refers to variables by it */
#define ALWAYS_LOGGED (1u << fmi3Error | 1u << fmi3Fatal)

#include "component.h"
#include "fmi3_variables.h"

/* Where a call during a step comes from. */
typedef enum { NO_UPDATE, BEFORE_INTERNAL_STEP, AFTER_INTERNAL_STEP } Update;

typedef struct {
    Component component;                /* first: a handle points to both */
    fmi3IntermediateUpdateCallback intermediate_update;
    unsigned char *intermediate;        /* which variables the host wants to set and get during steps; NULL where none */
    int uses_events, takes_early_return;
    int exchanges;                      /* whether the host integrates */
    Update update;
    double internal_end;                /* of the internal step that the host is told of */
} Life;

/* What every call needs: an instance, outside of steps. */
#define WITH_INSTANCE \
    Life *life = handle; \
    if (!life) return fmi3Error; \
    Component *component = &life->component; \
    if (life->update != NO_UPDATE) return refuse(component, "this function cannot be called from an intermediate update")

/* The same where it may be called during a step as well. */
#define WITH_INSTANCE_ANYTIME \
    Life *life = handle; \
    if (!life) return fmi3Error; \
    Component *component = &life->component

#include "fmi3_values.c"

/* -- life cycle and log --------------------------------------------------------------------------------------------- */

EXPORT const char *NAMED(fmi3GetVersion)(void) { return "3.0"; }

/* Why a variable cannot be reached during steps; NULL where it can. */
static const char *objection_to(const fmi3ValueReference references[], size_t count) {
    if (count > 0 && !references) return "there are no references of intermediate variables: the pointer is NULL";
    for (size_t k = 0; k < count; k++) {
        const fmi3ValueReference reference = references[k];
        if (reference == fmu_functions.variables || !size_of(reference) || !is_intermediate[reference]) {
            return "an intermediate variable is no continuous input or output of this FMU";
        }
    }
    return NULL;
}

/* Remember which variables the host wants to reach during steps; returns 0 where there is no memory. */
static int keep_intermediate(Life *life, const fmi3ValueReference references[], size_t count) {
    life->intermediate = calloc(fmu_functions.variables, 1);
    if (!life->intermediate) return 0;
    for (size_t k = 0; k < count; k++) life->intermediate[references[k]] = 1;
    return 1;
}

EXPORT fmi3Instance NAMED(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3Boolean event_mode, fmi3Boolean early_return, const fmi3ValueReference intermediate[], size_t intermediate_count,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update
) {
    Life *life = calloc(1, sizeof(Life));
    (void)visible;
    if (!life) return NULL;
    life->component.logger = logger;
    life->component.environment = environment;
    life->component.logged = logging ? EVERY_STATUS : 0;
    life->uses_events = event_mode;
    life->takes_early_return = early_return;
    life->intermediate_update = update;
    const char *refused = objection_to(intermediate, intermediate_count);
    if (!refused && TRIGGERED_CLOCKS && !event_mode) {
        refused = "its clocks are triggered by the host, which needs event mode for it";
    }
    if (begin_life(&life->component, name, token, resources, "instantiation token", 0, refused)) {
#if CLOCKS
        if (event_mode) fmu_functions.follow_clocks(life->component.instance);
#endif
        if (keep_intermediate(life, intermediate, intermediate_count)) return life;
        refuse(&life->component, "there is no memory for an instance");
        fmu_functions.destroy(life->component.instance);
    }
    free(life);
    return NULL;
}

EXPORT void NAMED(fmi3FreeInstance)(fmi3Instance handle) {
    Life *life = handle;
    if (!life) return;
    if (life->update != NO_UPDATE) {
        refuse(&life->component, "the instance cannot be freed from an intermediate update");
        return;
    }
    fmu_functions.destroy(life->component.instance);
    free(life->intermediate);
    free(life);
}

EXPORT fmi3Status NAMED(fmi3SetDebugLogging)(
    fmi3Instance handle, fmi3Boolean logging, size_t count, const fmi3String names[]
) {
    WITH_INSTANCE;
    unsigned chosen;
    if (find_categories(component, count, names, &chosen) != fmi3OK) return fmi3Error;
    if (logging) {
        component->logged |= chosen;
    } else {
        component->logged &= ~chosen;
    }
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3EnterInitializationMode)(
    fmi3Instance handle, fmi3Boolean has_tolerance, fmi3Float64 tolerance, fmi3Float64 start, fmi3Boolean has_stop,
    fmi3Float64 stop
) {
    WITH_INSTANCE;
    const double *tolerance_given = has_tolerance ? &tolerance : NULL;
    const Status status = fmu_functions.set_up(component->instance, start, has_stop ? &stop : NULL, tolerance_given);
    return status_of(status == DONE ? fmu_functions.enter_initialization(component->instance) : status);
}

EXPORT fmi3Status NAMED(fmi3ExitInitializationMode)(fmi3Instance handle) {
    WITH_INSTANCE;
    const Status status = fmu_functions.exit_initialization(component->instance);
    return status_of(status == DONE && life->uses_events ? fmu_functions.enter_events(component->instance) : status);
}

EXPORT fmi3Status NAMED(fmi3Terminate)(fmi3Instance handle) {
    WITH_INSTANCE;
    return status_of(fmu_functions.terminate(component->instance));
}

EXPORT fmi3Status NAMED(fmi3Reset)(fmi3Instance handle) {
    WITH_INSTANCE;
    return status_of(fmu_functions.reset(component->instance));
}

/* -- steps, what the host is told during them, and events ----------------------------------------------------------- */

/* Before an internal step the host may give inputs values where it ends. */
static void report_step_begin(void *host, double end) {
    Life *life = host;
    fmi3Boolean early = false;
    fmi3Float64 time = end;
    life->update = BEFORE_INTERNAL_STEP;
    life->internal_end = end;
    life->intermediate_update(life->component.environment, end, true, false, false, false, &early, &time);
    life->update = NO_UPDATE;
}

/* After an internal step the host may get values, and end the step early; gives the time up to which it goes on. */
static double report_step_end(void *host, double end) {
    Life *life = host;
    const fmi3Boolean can_return = life->takes_early_return;
    fmi3Boolean early = false;
    fmi3Float64 time = end;
    life->update = AFTER_INTERNAL_STEP;
    life->intermediate_update(life->component.environment, end, false, true, true, can_return, &early, &time);
    life->update = NO_UPDATE;
    if (!(can_return && early)) return HUGE_VAL;
    return time >= end ? time : end;
}

EXPORT fmi3Status NAMED(fmi3DoStep)(
    fmi3Instance handle, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_return, fmi3Boolean *event_handling_needed,
    fmi3Boolean *terminate, fmi3Boolean *early_return, fmi3Float64 *last_time
) {
    WITH_INSTANCE;
    NEED(event_handling_needed, "whether events are to be handled");
    NEED(terminate, "whether the simulation is to end");
    NEED(early_return, "whether the step ends early");
    NEED(last_time, "the time that is reached");
    Wishes wishes = {
        .ends_at_events = life->takes_early_return, .holds_events = life->uses_events, .stays = no_return};
    if (life->intermediate_update) {
        wishes.begins = report_step_begin;
        wishes.ended = report_step_end;
        wishes.host = life;
    }
    const Status status = fmu_functions.step(component->instance, time, step, &wishes);
    *last_time = fmu_functions.time(component->instance);
    *terminate = false; /* the unit never ends a simulation by itself */
    *early_return = status == DONE && life->takes_early_return && *last_time < time + step;
    *event_handling_needed = status == DONE && life->uses_events && fmu_functions.is_at_event(component->instance);
    return status_of(status);
}

#if MODEL_EXCHANGE

/* Let events happen, and tell what becomes of continuous states where the host integrates these. */
static Status update_states(Life *life, fmi3Boolean *nominals, fmi3Boolean *states, int *some, double *next) {
    Updated updated;
    if (!life->exchanges) return fmu_functions.pass_events(life->component.instance, some, next);
    const Status status = exchange_functions.update(life->component.instance, &updated);
    if (status != DONE) return status;
    *some = updated.some;
    *nominals = updated.nominals_changed != 0;
    *states = true;
    *next = updated.next;
    return DONE;
}

static Status enter_events(Life *life) {
    Instance *instance = life->component.instance;
    return life->exchanges ? exchange_functions.enter_events(instance) : fmu_functions.enter_events(instance);
}

#else

static Status update_states(Life *life, fmi3Boolean *nominals, fmi3Boolean *states, int *some, double *next) {
    (void)nominals;
    (void)states;
    return fmu_functions.pass_events(life->component.instance, some, next);
}

static Status enter_events(Life *life) { return fmu_functions.enter_events(life->component.instance); }

#endif

#define NEED_EVENTS \
    if (!life->uses_events) return refuse(component, "the instance was made without event mode")

EXPORT fmi3Status NAMED(fmi3EnterEventMode)(fmi3Instance handle) {
    WITH_INSTANCE;
    if (!life->exchanges) NEED_EVENTS;
    return status_of(enter_events(life));
}

EXPORT fmi3Status NAMED(fmi3EnterStepMode)(fmi3Instance handle) {
    WITH_INSTANCE;
#if MODEL_EXCHANGE
    if (life->exchanges) return refuse(component, "this instance is for model exchange: it makes no steps");
#endif
    NEED_EVENTS;
    return status_of(fmu_functions.exit_events(component->instance));
}

/* Where events have happened another iteration is asked for: what this FMU gives to others has jumped. */
EXPORT fmi3Status NAMED(fmi3UpdateDiscreteStates)(
    fmi3Instance handle, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals, fmi3Boolean *states,
    fmi3Boolean *has_next, fmi3Float64 *next
) {
    WITH_INSTANCE;
    int some = 0;
    double time = 0.0;
    NEED(again, "whether discrete states need another update");
    NEED(terminate, "whether the simulation is to end");
    NEED(nominals, "whether nominal values have changed");
    NEED(states, "whether states have changed");
    NEED(has_next, "whether there is a next event");
    NEED(next, "the time of the next event");
    *nominals = *states = false;
    const Status status = update_states(life, nominals, states, &some, &time);
    if (status != DONE) return status_of(status);
    *again = some != 0;
    *terminate = false;
    *has_next = time < DBL_MAX;
    if (*has_next) *next = time;
    return fmi3OK;
}

/* -- saved states, which FMI 3.0 calls FMU states ------------------------------------------------------------------- */

EXPORT fmi3Status NAMED(fmi3GetFMUState)(fmi3Instance handle, fmi3FMUState *saved) {
    WITH_INSTANCE;
    return save_state(component, saved);
}

EXPORT fmi3Status NAMED(fmi3SetFMUState)(fmi3Instance handle, fmi3FMUState saved) {
    WITH_INSTANCE;
    return restore_state(component, saved);
}

EXPORT fmi3Status NAMED(fmi3FreeFMUState)(fmi3Instance handle, fmi3FMUState *saved) {
    WITH_INSTANCE;
    (void)component;
    return free_state(saved);
}

EXPORT fmi3Status NAMED(fmi3SerializedFMUStateSize)(fmi3Instance handle, fmi3FMUState saved, size_t *size) {
    WITH_INSTANCE;
    (void)saved;
    return give_state_size(component, size);
}

EXPORT fmi3Status NAMED(fmi3SerializeFMUState)(
    fmi3Instance handle, fmi3FMUState saved, fmi3Byte bytes[], size_t size
) {
    WITH_INSTANCE;
    return serialize_state(component, saved, (char *)bytes, size);
}

EXPORT fmi3Status NAMED(fmi3DeserializeFMUState)(
    fmi3Instance handle, const fmi3Byte bytes[], size_t size, fmi3FMUState *saved
) {
    WITH_INSTANCE;
    return deserialize_state(component, (const char *)bytes, size, saved);
}

/* -- functions that importers must find: of other types, of clocks, structural parameters and other interfaces ------ */

#define UNSUPPORTED(what) \
    WITH_INSTANCE; \
    return refuse(component, "this FMU has no %s", what)

/* -- variables of other types ------------------------------------------------------------------------------------- */

#define NO_VARIABLES_OF(access, type, qualifier) \
    EXPORT fmi3Status NAMED(fmi3##access##type)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, qualifier fmi3##type values[], \
        size_t value_count \
    ) { \
        (void)references; \
        (void)values; \
        if (handle && count == 0 && value_count == 0) return fmi3OK; \
        UNSUPPORTED("variables of type " #type); \
    }

#define ONLY_READ
#define NO_VARIABLES(type) NO_VARIABLES_OF(Get, type, ONLY_READ) NO_VARIABLES_OF(Set, type, const)

NO_VARIABLES(Float32)
NO_VARIABLES(Int8)
NO_VARIABLES(UInt8)
NO_VARIABLES(Int16)
NO_VARIABLES(UInt16)
NO_VARIABLES(Int32)
NO_VARIABLES(UInt32)
NO_VARIABLES(Int64)
NO_VARIABLES(UInt64)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

#define NO_BINARIES(access, qualifier) \
    EXPORT fmi3Status NAMED(fmi3##access##Binary)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, qualifier size_t sizes[], \
        qualifier fmi3Binary values[], size_t value_count \
    ) { \
        (void)references; \
        (void)sizes; \
        (void)values; \
        if (handle && count == 0 && value_count == 0) return fmi3OK; \
        UNSUPPORTED("variables of type Binary"); \
    }

NO_BINARIES(Get, ONLY_READ)
NO_BINARIES(Set, const)

/* -- clocks: what is refused of them, all where updates are events of the unit's own ------------------------------------------------ */

#define REFUSE_CLOCKS \
    (void)references; \
    if (handle && count == 0) return fmi3OK; \
    UNSUPPORTED(CLOCKS ? "clocks that can be used so" : "clocks")

#define NO_CLOCK_VALUES(name, type) \
    EXPORT fmi3Status NAMED(name)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, type values[] \
    ) { \
        (void)values; \
        REFUSE_CLOCKS; \
    }
#define NO_CLOCK_PAIRS(name, first, second) \
    EXPORT fmi3Status NAMED(name)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, first values[], second others[] \
    ) { \
        (void)values; \
        (void)others; \
        REFUSE_CLOCKS; \
    }

#if !CLOCKS
NO_CLOCK_VALUES(fmi3GetClock, fmi3Clock)
NO_CLOCK_VALUES(fmi3SetClock, const fmi3Clock)
NO_CLOCK_VALUES(fmi3GetShiftDecimal, fmi3Float64)
NO_CLOCK_PAIRS(fmi3GetIntervalDecimal, fmi3Float64, fmi3IntervalQualifier)
#endif
NO_CLOCK_VALUES(fmi3SetShiftDecimal, const fmi3Float64)
NO_CLOCK_VALUES(fmi3SetIntervalDecimal, const fmi3Float64)
NO_CLOCK_PAIRS(fmi3GetShiftFraction, fmi3UInt64, fmi3UInt64)
NO_CLOCK_PAIRS(fmi3SetShiftFraction, const fmi3UInt64, const fmi3UInt64)
NO_CLOCK_PAIRS(fmi3SetIntervalFraction, const fmi3UInt64, const fmi3UInt64)

EXPORT fmi3Status NAMED(fmi3GetIntervalFraction)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3UInt64 counters[],
    fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[]
) {
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    REFUSE_CLOCKS;
}

EXPORT fmi3Status NAMED(fmi3EvaluateDiscreteStates)(fmi3Instance handle) {
    UNSUPPORTED("evaluation of discrete states apart from fmi3UpdateDiscreteStates");
}

/* -- structural parameters, and dependencies of elements ------------------------------------------------------------ */

EXPORT fmi3Status NAMED(fmi3EnterConfigurationMode)(fmi3Instance handle) { UNSUPPORTED("structural parameters"); }

EXPORT fmi3Status NAMED(fmi3ExitConfigurationMode)(fmi3Instance handle) { UNSUPPORTED("structural parameters"); }

#define NO_DEPENDENCIES UNSUPPORTED("dependencies by element; the model description has those of variables")

EXPORT fmi3Status NAMED(fmi3GetNumberOfVariableDependencies)(
    fmi3Instance handle, fmi3ValueReference reference, size_t *count
) {
    (void)reference;
    (void)count;
    NO_DEPENDENCIES;
}

EXPORT fmi3Status NAMED(fmi3GetVariableDependencies)(
    fmi3Instance handle, fmi3ValueReference dependent, size_t elements[], fmi3ValueReference independents[],
    size_t elements_of_independents[], fmi3DependencyKind kinds[], size_t count
) {
    (void)dependent;
    (void)elements;
    (void)independents;
    (void)elements_of_independents;
    (void)kinds;
    (void)count;
    NO_DEPENDENCIES;
}

/* -- other interfaces ----------------------------------------------------------------------------------------------- */

/* Tell that there is no instance of another interface. */
static fmi3Instance no_instance(fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, const char *other) {
    const Component nobody = {.logger = logger, .environment = environment};
    refuse(&nobody, "this FMU is for co-simulation, not for %s", other);
    return NULL;
}

EXPORT fmi3Instance NAMED(fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3ClockUpdateCallback clock_update,
    fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock
) {
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)clock_update;
    (void)lock;
    (void)unlock;
    return no_instance(environment, logger, "scheduled execution");
}

EXPORT fmi3Status NAMED(fmi3ActivateModelPartition)(
    fmi3Instance handle, fmi3ValueReference clock, fmi3Float64 time
) {
    (void)clock;
    (void)time;
    UNSUPPORTED("scheduled execution; it is for co-simulation");
}

#if !MODEL_EXCHANGE

EXPORT fmi3Instance NAMED(fmi3InstantiateModelExchange)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger
) {
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    return no_instance(environment, logger, "model exchange");
}

#define NO_MODEL_EXCHANGE UNSUPPORTED("model exchange; it is for co-simulation")

EXPORT fmi3Status NAMED(fmi3EnterContinuousTimeMode)(fmi3Instance handle) { NO_MODEL_EXCHANGE; }

EXPORT fmi3Status NAMED(fmi3CompletedIntegratorStep)(
    fmi3Instance handle, fmi3Boolean no_set, fmi3Boolean *enter_event_mode, fmi3Boolean *terminate
) {
    (void)no_set;
    (void)enter_event_mode;
    (void)terminate;
    NO_MODEL_EXCHANGE;
}

EXPORT fmi3Status NAMED(fmi3SetTime)(fmi3Instance handle, fmi3Float64 time) {
    (void)time;
    NO_MODEL_EXCHANGE;
}

#define NO_VECTOR(name, type) \
    EXPORT fmi3Status NAMED(name)(fmi3Instance handle, type values[], size_t count) { \
        (void)values; \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_VECTOR(fmi3SetContinuousStates, const fmi3Float64)
NO_VECTOR(fmi3GetContinuousStates, fmi3Float64)
NO_VECTOR(fmi3GetContinuousStateDerivatives, fmi3Float64)
NO_VECTOR(fmi3GetNominalsOfContinuousStates, fmi3Float64)
NO_VECTOR(fmi3GetEventIndicators, fmi3Float64)

#define NO_COUNT(name) \
    EXPORT fmi3Status NAMED(name)(fmi3Instance handle, size_t *count) { \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_COUNT(fmi3GetNumberOfContinuousStates)
NO_COUNT(fmi3GetNumberOfEventIndicators)

#endif

#if MODEL_EXCHANGE
#include "fmi3_exchange.c"
#endif
