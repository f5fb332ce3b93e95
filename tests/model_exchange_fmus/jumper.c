/* An FMU for model exchange, of FMI 2.0 or 3.0 by VERSION: a mass that swings, bounces, ticks, wraps, and can fail.
 *
 *   x' = v,  v' = -gravity - stiffness x - damping v + swing (1 - x^2) v + force + kick
 *
 * State events: where bounces are on, x falls to 0 and the mass leaves with -restitution v, or rests. Time events: at n
 * period, `ticks` counts, and the unit ends the run at `last`. Step events: beyond `limit`, x is set back by it.
 * Calls in a wrong mode are refused, and so are times that lie before what was completed.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define TOKEN "{jumper}"

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef enum { INSTANTIATED, INITIALIZATION, EVENT, CONTINUOUS, TERMINATED } Mode;
enum {
    X, V, RATE_X, RATE_V, FORCE, KICK, GRAVITY, STIFFNESS, DAMPING, SWING, RESTITUTION, PERIOD, LIMIT, LAST, FAULT,
    TICKS, BOUNCES, WRAPS, RESTING, ACCELERATION, NOMINAL, EVENTS, COUNT
};
enum { NO_FAULT, DISCARDS, FAILS, NEVER_CONVERGES, NOT_FINITE, HANGS, CRASHES, CHATTERS };

#if VERSION == 2
typedef void (*Logger)(void *environment, const char *name, Status status, const char *category, const char *text, ...);
typedef int Flag;
#define NAME(function) fmi2##function
#else
typedef void (*Logger)(void *environment, Status status, const char *category, const char *text);
typedef bool Flag;
#define NAME(function) fmi3##function
#endif

typedef struct {
    double value[COUNT];
    double time, completed;
    Mode mode;
    bool iterated;
} Values;

typedef struct {
    Values now;
    Logger logger;
    void *environment;
    double flushed; /* no state of an earlier time will be set any more */
} Unit;

static Status refuse(Unit *unit, Status status, const char *why)
{
#if VERSION == 2
    unit->logger(unit->environment, "jumper", status, "logStatusError", why);
#else
    unit->logger(unit->environment, status, "logStatusError", why);
#endif
    return status;
}

static Status in_mode(Unit *unit, const char *function)
{
    static const char *const modes[] = {"instantiated", "initialization", "event", "continuous-time", "terminated"};
    char why[200];
    snprintf(why, sizeof why, "%s is not allowed in %s mode", function, modes[unit->now.mode]);
    return refuse(unit, ERROR, why);
}
#define NEEDS(condition, function)                                                                                     \
    Unit *unit = component;                                                                                            \
    const Mode mode = unit->now.mode;                                                                                  \
    (void)mode;                                                                                                        \
    if (!(condition))                                                                                                  \
        return in_mode(unit, function);

static void start(Values *now)
{
    memset(now, 0, sizeof *now);
    now->value[RESTITUTION] = -1.0; /* no ground */
    now->value[LIMIT] = now->value[LAST] = 1e300;
    now->value[NOMINAL] = 1.0;
}

static void update(Values *now)
{
    double *y = now->value, x = y[X], v = y[V];
    y[RATE_X] = v;
    y[RATE_V] = -y[GRAVITY] - y[STIFFNESS] * x - y[DAMPING] * v + y[SWING] * (1.0 - x * x) * v + y[FORCE] + y[KICK];
    if (y[RESTING] != 0.0)
        y[RATE_X] = y[RATE_V] = 0.0;
    y[ACCELERATION] = y[RATE_V];
    if (y[FAULT] == NOT_FINITE && x > 2.0)
        y[RATE_V] = NAN;
}

static double following(const Values *now)
{
    const double *y = now->value;
    if (y[FAULT] == CHATTERS && now->time > 0.5)
        return now->time;
    double next = y[PERIOD] > 0.0 ? (y[TICKS] + 1.0) * y[PERIOD] : INFINITY;
    return fmin(next, y[LAST] < 1e300 ? y[LAST] : INFINITY);
}

/* Handles an event; returns whether it ends the run. */
static bool handle(Values *now)
{
    double *y = now->value;
    if (y[RESTITUTION] >= 0.0 && y[X] <= 0.0 && y[V] < 0.0) {
        y[X] = 0.0;
        y[V] *= -y[RESTITUTION];
        y[BOUNCES] += 1.0;
        if (y[V] < 0.1)
            y[V] = 0.0, y[RESTING] = 1.0;
    }
    if (y[PERIOD] > 0.0 && now->time >= (y[TICKS] + 1.0) * y[PERIOD])
        y[TICKS] += 1.0;
    if (y[X] > y[LIMIT]) {
        y[X] -= y[LIMIT];
        y[WRAPS] += 1.0;
    }
    return now->time >= y[LAST];
}

static void *make(const char *token, Logger logger, void *environment)
{
    Unit *unit = calloc(1, sizeof *unit);
    if (!unit || strcmp(token, TOKEN) != 0)
        return free(unit), NULL;
    unit->logger = logger;
    unit->environment = environment;
    start(&unit->now);
    return unit;
}

static Status get(Unit *unit, const uint32_t *references, size_t count, double *values)
{
    update(&unit->now);
    for (size_t i = 0; i < count; i++) {
        if (references[i] >= COUNT)
            return refuse(unit, ERROR, "there is no such variable");
        values[i] = unit->now.value[references[i]];
    }
    return OK;
}

static Status set(Unit *unit, const uint32_t *references, size_t count, const double *values)
{
    const Mode mode = unit->now.mode;
    for (size_t i = 0; i < count; i++) {
        bool allowed = mode == INSTANTIATED || mode == INITIALIZATION ||
                       (mode == EVENT && references[i] != X && references[i] != V) ||
                       (mode == CONTINUOUS && references[i] == FORCE);
        if (references[i] >= COUNT || !allowed)
            return in_mode(unit, "setting this variable");
        unit->now.value[references[i]] = values[i];
    }
    return OK;
}

EXPORT const char *NAME(GetVersion)(void) { return VERSION == 2 ? "2.0" : "3.0"; }
EXPORT Status NAME(SetDebugLogging)(void *unit, Flag on, size_t count, const char *const *categories)
{
    (void)unit, (void)on, (void)count, (void)categories;
    return OK;
}
EXPORT void NAME(FreeInstance)(void *component) { free(component); }
EXPORT Status NAME(ExitInitializationMode)(void *component)
{
    NEEDS(mode == INITIALIZATION, "leaving initialization")
    unit->now.mode = EVENT;
    return OK;
}
EXPORT Status NAME(Terminate)(void *component)
{
    NEEDS(mode == EVENT || mode == CONTINUOUS, "terminating")
    unit->now.mode = TERMINATED;
    return OK;
}
EXPORT Status NAME(EnterEventMode)(void *component)
{
    NEEDS(mode == CONTINUOUS, "entering event mode")
    unit->now.mode = EVENT;
    unit->now.value[EVENTS] += 1.0;
    return OK;
}
EXPORT Status NAME(EnterContinuousTimeMode)(void *component)
{
    NEEDS(mode == EVENT && unit->now.iterated, "entering continuous-time mode")
    unit->now.iterated = false;
    unit->now.completed = unit->now.time;
    unit->now.mode = CONTINUOUS;
    return OK;
}
EXPORT Status NAME(SetTime)(void *component, double time)
{
    NEEDS(mode == CONTINUOUS, "setting time")
    if (time < unit->now.completed)
        return refuse(unit, ERROR, "a time is set that lies before what was completed");
    unit->now.time = time;
    return OK;
}
EXPORT Status NAME(SetContinuousStates)(void *component, const double *x, size_t count)
{
    NEEDS(mode == CONTINUOUS && count == 2, "setting states")
    memcpy(unit->now.value, x, 2 * sizeof *x);
    return OK;
}
EXPORT Status NAME(GetContinuousStates)(void *component, double *x, size_t count)
{
    NEEDS((mode == CONTINUOUS || mode == EVENT) && count == 2, "reading states")
    memcpy(x, unit->now.value, 2 * sizeof *x);
    return OK;
}
EXPORT Status NAME(GetNominalsOfContinuousStates)(void *component, double *x, size_t count)
{
    NEEDS((mode == CONTINUOUS || mode == EVENT) && count == 2, "reading nominal values")
    x[0] = x[1] = unit->now.value[NOMINAL];
    return OK;
}
EXPORT Status NAME(GetEventIndicators)(void *component, double *z, size_t count)
{
    NEEDS((mode == CONTINUOUS || mode == EVENT) && count == 1, "reading event indicators")
    double *y = unit->now.value;
    z[0] = y[RESTITUTION] >= 0.0 && y[RESTING] == 0.0 ? y[X] : 1.0;
    return OK;
}
static Status rates(Unit *unit, double *out, size_t count)
{
    if ((unit->now.mode != CONTINUOUS && unit->now.mode != EVENT) || count != 2)
        return in_mode(unit, "reading derivatives");
    double *y = unit->now.value;
    if (y[FAULT] == DISCARDS && y[X] > 2.0)
        return refuse(unit, DISCARD, "x is beyond 2");
    if (y[FAULT] == FAILS && unit->now.time > 0.5)
        return refuse(unit, ERROR, "it is later than half past");
#if !defined(_WIN32)
    while (y[FAULT] == HANGS && unit->now.time > 0.5)
        sleep(1);
#endif
    if (y[FAULT] == CRASHES && unit->now.time > 0.5)
        abort();
    update(&unit->now);
    out[0] = y[RATE_X], out[1] = y[RATE_V];
    return OK;
}
static Status complete(Unit *unit, Flag stays, Flag *asks, Flag *ends)
{
    if (unit->now.mode != CONTINUOUS)
        return in_mode(unit, "completing a step");
    if (stays)
        unit->flushed = unit->now.time;
    unit->now.completed = unit->now.time;
    *asks = unit->now.value[X] > unit->now.value[LIMIT];
    *ends = false;
    return OK;
}
EXPORT Status NAME(CompletedIntegratorStep)(void *component, Flag stays, Flag *asks, Flag *ends)
{
    return complete(component, stays, asks, ends);
}
static double derivative(const Values *now, uint32_t unknown, uint32_t known)
{
    const double *y = now->value;
    if (unknown == RATE_X)
        return known == V;
    if (unknown != RATE_V && unknown != ACCELERATION)
        return unknown == known;
    return known == X   ? -y[STIFFNESS] - 2.0 * y[SWING] * y[X] * y[V]
           : known == V ? -y[DAMPING] + y[SWING] * (1.0 - y[X] * y[X])
                        : known == FORCE || known == KICK;
}
static Status directional(Unit *unit, const uint32_t *unknowns, size_t rows, const uint32_t *knowns, size_t columns,
                          const double *seed, double *sensitivity)
{
    for (size_t i = 0; i < rows; i++) {
        sensitivity[i] = 0.0;
        for (size_t k = 0; k < columns; k++)
            sensitivity[i] += derivative(&unit->now, unknowns[i], knowns[k]) * seed[k];
    }
    return OK;
}
static Status save(Unit *unit, void **state)
{
    if (!*state)
        *state = malloc(sizeof(Values));
    memcpy(*state, &unit->now, sizeof(Values));
    return OK;
}
static Status restore(Unit *unit, const void *state)
{
    if (((const Values *)state)->time < unit->flushed)
        return refuse(unit, ERROR, "a state is set that is from before what was said to stay");
    memcpy(&unit->now, state, sizeof(Values));
    return OK;
}
static Status forget(void **state)
{
    free(*state);
    *state = NULL;
    return OK;
}

/* What a library must have and this FMU does not do. */
#define MISSING(function)                                                                                              \
    EXPORT Status NAME(function)(void *component) { return refuse(component, ERROR, #function " is not supported"); }
#if VERSION == 2
MISSING(Reset) MISSING(GetInteger) MISSING(GetBoolean)
MISSING(GetString) MISSING(SetInteger) MISSING(SetBoolean)
MISSING(SetString) MISSING(DoStep) MISSING(CancelStep)
MISSING(GetStatus) MISSING(GetRealStatus) MISSING(GetIntegerStatus)
MISSING(GetBooleanStatus) MISSING(GetStringStatus) MISSING(SetRealInputDerivatives)
MISSING(GetRealOutputDerivatives)
EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
typedef struct {
    Logger logger;
    void *allocate, *release, *finished, *environment;
} Callbacks;
EXPORT void *fmi2Instantiate(const char *name, int kind, const char *token, const char *resources,
                             const Callbacks *callbacks, int visible, int logging)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return kind == 0 ? make(token, callbacks->logger, callbacks->environment) : NULL;
}
EXPORT Status fmi2SetupExperiment(void *component, int defined, double tolerance, double begin, int ends, double end)
{
    (void)defined, (void)tolerance, (void)ends, (void)end;
    ((Unit *)component)->now.time = begin;
    return OK;
}
EXPORT Status fmi2EnterInitializationMode(void *component)
{
    NEEDS(mode == INSTANTIATED, "entering initialization")
    unit->now.mode = INITIALIZATION;
    return OK;
}
typedef struct {
    int again, ends, nominals, states, defined;
    double next;
} EventInfo;
EXPORT Status fmi2NewDiscreteStates(void *component, EventInfo *told)
{
    NEEDS(mode == EVENT, "updating discrete states")
    memset(told, 0, sizeof *told);
    told->again = !unit->now.iterated || unit->now.value[FAULT] == NEVER_CONVERGES;
    told->ends = handle(&unit->now);
    told->nominals = told->states = 1;
    told->next = following(&unit->now);
    told->defined = isfinite(told->next);
    unit->now.iterated = true;
    return OK;
}
EXPORT Status fmi2GetReal(void *unit, const uint32_t *r, size_t n, double *out) { return get(unit, r, n, out); }
EXPORT Status fmi2SetReal(void *unit, const uint32_t *r, size_t n, const double *in) { return set(unit, r, n, in); }
EXPORT Status fmi2GetDerivatives(void *unit, double *out, size_t count) { return rates(unit, out, count); }
EXPORT Status fmi2GetDirectionalDerivative(void *unit, const uint32_t *unknowns, size_t rows, const uint32_t *knowns,
                                           size_t columns, const double *seed, double *sensitivity)
{
    return directional(unit, unknowns, rows, knowns, columns, seed, sensitivity);
}
EXPORT Status fmi2GetFMUstate(void *unit, void **state) { return save(unit, state); }
EXPORT Status fmi2SetFMUstate(void *unit, void *state) { return restore(unit, state); }
EXPORT Status fmi2FreeFMUstate(void *unit, void **state) { return (void)unit, forget(state); }
EXPORT Status fmi2SerializedFMUstateSize(void *unit, void *state, size_t *size)
{
    (void)unit, (void)state;
    return *size = sizeof(Values), OK;
}
EXPORT Status fmi2SerializeFMUstate(void *unit, void *state, char *bytes, size_t size)
{
    (void)unit;
    return memcpy(bytes, state, size), OK;
}
EXPORT Status fmi2DeSerializeFMUstate(void *unit, const char *bytes, size_t size, void **state)
{
    save(unit, state);
    return memcpy(*state, bytes, size), OK;
}
#else
MISSING(ActivateModelPartition) MISSING(DoStep) MISSING(EnterConfigurationMode)
MISSING(EnterStepMode) MISSING(EvaluateDiscreteStates) MISSING(ExitConfigurationMode)
MISSING(GetAdjointDerivative) MISSING(GetBinary) MISSING(GetBoolean)
MISSING(GetClock) MISSING(GetFloat32) MISSING(GetInt16)
MISSING(GetInt32) MISSING(GetInt64) MISSING(GetInt8)
MISSING(GetIntervalDecimal) MISSING(GetIntervalFraction) MISSING(GetNumberOfVariableDependencies)
MISSING(GetOutputDerivatives) MISSING(GetShiftDecimal) MISSING(GetShiftFraction)
MISSING(GetString) MISSING(GetUInt16) MISSING(GetUInt32)
MISSING(GetUInt64) MISSING(GetUInt8) MISSING(GetVariableDependencies)
MISSING(Reset) MISSING(SetBinary) MISSING(SetBoolean)
MISSING(SetClock) MISSING(SetFloat32) MISSING(SetInt16)
MISSING(SetInt32) MISSING(SetInt64) MISSING(SetInt8)
MISSING(SetIntervalDecimal) MISSING(SetIntervalFraction) MISSING(SetShiftDecimal)
MISSING(SetShiftFraction) MISSING(SetString) MISSING(SetUInt16)
MISSING(SetUInt32) MISSING(SetUInt64) MISSING(SetUInt8)
EXPORT void *fmi3InstantiateCoSimulation(void) { return NULL; }
EXPORT void *fmi3InstantiateScheduledExecution(void) { return NULL; }
EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, void *environment, Logger logger)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return make(token, logger, environment);
}
EXPORT Status fmi3EnterInitializationMode(void *component, bool defined, double tolerance, double begin, bool ends,
                                          double end)
{
    (void)defined, (void)tolerance, (void)ends, (void)end;
    NEEDS(mode == INSTANTIATED, "entering initialization")
    unit->now.mode = INITIALIZATION;
    unit->now.time = begin;
    return OK;
}
EXPORT Status fmi3UpdateDiscreteStates(void *component, bool *again, bool *ends, bool *nominals, bool *states,
                                       bool *defined, double *next)
{
    NEEDS(mode == EVENT, "updating discrete states")
    *again = !unit->now.iterated || unit->now.value[FAULT] == NEVER_CONVERGES;
    *ends = handle(&unit->now);
    *nominals = *states = true;
    *next = following(&unit->now);
    *defined = isfinite(*next);
    unit->now.iterated = true;
    return OK;
}
EXPORT Status fmi3GetNumberOfContinuousStates(void *unit, size_t *count) { return (void)unit, *count = 2, OK; }
EXPORT Status fmi3GetNumberOfEventIndicators(void *unit, size_t *count) { return (void)unit, *count = 1, OK; }
EXPORT Status fmi3GetFloat64(void *unit, const uint32_t *r, size_t n, double *out, size_t size)
{
    return (void)size, get(unit, r, n, out);
}
EXPORT Status fmi3SetFloat64(void *unit, const uint32_t *r, size_t n, const double *in, size_t size)
{
    return (void)size, set(unit, r, n, in);
}
EXPORT Status fmi3GetContinuousStateDerivatives(void *unit, double *out, size_t n) { return rates(unit, out, n); }
EXPORT Status fmi3GetDirectionalDerivative(void *unit, const uint32_t *unknowns, size_t rows, const uint32_t *knowns,
                                           size_t columns, const double *seed, size_t seeds, double *sensitivity,
                                           size_t sensitivities)
{
    (void)seeds, (void)sensitivities;
    return directional(unit, unknowns, rows, knowns, columns, seed, sensitivity);
}
EXPORT Status fmi3GetFMUState(void *unit, void **state) { return save(unit, state); }
EXPORT Status fmi3SetFMUState(void *unit, void *state) { return restore(unit, state); }
EXPORT Status fmi3FreeFMUState(void *unit, void **state) { return (void)unit, forget(state); }
EXPORT Status fmi3SerializedFMUStateSize(void *unit, void *state, size_t *size)
{
    (void)unit, (void)state;
    return *size = sizeof(Values), OK;
}
EXPORT Status fmi3SerializeFMUState(void *unit, void *state, uint8_t *bytes, size_t size)
{
    (void)unit;
    return memcpy(bytes, state, size), OK;
}
EXPORT Status fmi3DeserializeFMUState(void *unit, const uint8_t *bytes, size_t size, void **state)
{
    save(unit, state);
    return memcpy(*state, bytes, size), OK;
}
#endif
