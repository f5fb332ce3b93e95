/* The functions of FMI 3.0 for co-simulation, for all FMUs of this folder that are of it. */

static Status refuse(Unit *unit, Status status, const char *why)
{
    if (unit && unit->logger)
        unit->logger(unit->environment, status, "logStatusError", why);
    return status;
}

static Status in_wrong_mode(Unit *unit, const char *function)
{
    static const char *const modes[] = {"instantiated", "initialization mode", "step mode", "event mode", "terminated",
                                        "configuration mode"};
    char why[256];
    snprintf(why, sizeof why, "%s is not allowed in %s", function, modes[unit->mode]);
    return refuse(unit, ERROR, why);
}

#define COUNT (sizeof variables / sizeof *variables)
#ifdef SIZE_OF
#define CONFIGURES
#else
#define SIZE_OF(VALUES, REFERENCE) ((void)(VALUES), variables[REFERENCE].size)
#endif

EXPORT3 const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT3 Status fmi3SetDebugLogging(void *unit, bool on, size_t count, const char *const *categories)
{
    (void)unit, (void)on, (void)count, (void)categories;
    return OK;
}

EXPORT3 void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, bool event_mode, bool early_return,
                                          const uint32_t *intermediate, size_t count, void *environment, Logger logger,
                                          void *update_callback)
{
    (void)name, (void)resources, (void)visible, (void)logging, (void)intermediate, (void)count, (void)update_callback;
    Unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    unit->logger = logger;
    unit->environment = environment;
    unit->uses_events = event_mode;
    const char *why = strcmp(token, UNIT_TOKEN) != 0         ? "the description is that of another FMU"
                      : event_mode && !HAS_EVENT_MODE        ? "there is no event mode"
                      : HAS_EVENT_MODE && !(event_mode && early_return) ? "events need event mode and early return"
                                                             : NULL;
    if (why) {
        refuse(unit, ERROR, why);
        free(unit);
        return NULL;
    }
    unit->values.next_event = INFINITY;
    start(&unit->values);
    return unit;
}

EXPORT3 void fmi3FreeInstance(void *unit) { free(unit); }

EXPORT3 Status fmi3EnterInitializationMode(void *component, bool defined, double tolerance, double begin, bool ends,
                                           double end)
{
    (void)defined, (void)tolerance, (void)ends, (void)end;
    Unit *unit = component;
    if (unit->mode != INSTANTIATED)
        return in_wrong_mode(unit, "fmi3EnterInitializationMode");
    unit->mode = INITIALIZATION;
    unit->values.time = begin;
    return OK;
}

EXPORT3 Status fmi3ExitInitializationMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != INITIALIZATION)
        return in_wrong_mode(unit, "fmi3ExitInitializationMode");
    unit->mode = unit->uses_events ? EVENT : STEP;
    return OK;
}

EXPORT3 Status fmi3EnterEventMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != STEP || !unit->uses_events)
        return in_wrong_mode(unit, "fmi3EnterEventMode");
    unit->mode = EVENT;
    return OK;
}

EXPORT3 Status fmi3EnterStepMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != EVENT)
        return in_wrong_mode(unit, "fmi3EnterStepMode");
    unit->mode = STEP;
    return OK;
}

EXPORT3 Status fmi3Terminate(void *component)
{
    ((Unit *)component)->mode = TERMINATED;
    return OK;
}

EXPORT3 Status fmi3UpdateDiscreteStates(void *component, bool *again, bool *ends, bool *nominals, bool *states,
                                        bool *defined, double *next)
{
    Unit *unit = component;
    if (unit->mode != EVENT)
        return in_wrong_mode(unit, "fmi3UpdateDiscreteStates");
    handle(&unit->values);
    *again = *ends = *nominals = *states = false;
    *defined = isfinite(unit->values.next_event);
    *next = unit->values.next_event;
    return OK;
}

EXPORT3 Status fmi3DoStep(void *component, double time, double step, bool final, bool *event, bool *ends, bool *early,
                          double *reached)
{
    (void)final;
    Unit *unit = component;
    if (unit->mode != STEP)
        return in_wrong_mode(unit, "fmi3DoStep");
    if (fabs(time - unit->values.time) > 1e-9)
        return refuse(unit, ERROR, "the step does not begin where the last one has ended");
    if (time + step > unit->values.next_event + 1e-9)
        return refuse(unit, ERROR, "the step goes beyond the next event");
    Outcome outcome = {false, false, time + step};
    Status status = advance(&unit->values, time + step, &outcome);
    unit->values.time = outcome.reached;
    *event = outcome.event;
    *ends = outcome.ends;
    *early = outcome.reached < time + step;
    *reached = outcome.reached;
    return status;
}

static bool may_set(const Unit *unit, Use use)
{
    switch (unit->mode) {
    case CONFIGURATION:
        return use == STRUCTURAL;
    case INSTANTIATED:
    case INITIALIZATION:
        return use != NEITHER && use != STRUCTURAL;
    case STEP:
        return use == INPUT || (use == DISCRETE_INPUT && !unit->uses_events);
    case EVENT:
        return use == INPUT || use == DISCRETE_INPUT;
    default:
        return false;
    }
}

/* Whether references are of variables of a type with so many values. */
static bool fit(const Values *values, const uint32_t *references, size_t count, Type type, size_t value_count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (references[i] >= COUNT || variables[references[i]].type != type)
            return false;
        sum += SIZE_OF(values, references[i]);
    }
    return sum == value_count;
}

#define ACCESS(NAME, TYPE, MEMBER, KIND)                                                                               \
    EXPORT3 Status fmi3Get##NAME(void *component, const uint32_t *references, size_t count, TYPE *values, size_t n)    \
    {                                                                                                                  \
        Unit *unit = component;                                                                                        \
        if (!fit(&unit->values, references, count, KIND, n))                                                           \
            return refuse(unit, ERROR, "fmi3Get" #NAME " of other variables or of another number of values");          \
        update(&unit->values);                                                                                         \
        for (size_t i = 0; i < count; i++)                                                                             \
            for (size_t k = 0; k < SIZE_OF(&unit->values, references[i]); k++)                                         \
                *values++ = unit->values.MEMBER[variables[references[i]].first + k];                                   \
        return OK;                                                                                                     \
    }                                                                                                                  \
    EXPORT3 Status fmi3Set##NAME(void *component, const uint32_t *references, size_t count, const TYPE *values,        \
                                 size_t n)                                                                             \
    {                                                                                                                  \
        Unit *unit = component;                                                                                        \
        if (!fit(&unit->values, references, count, KIND, n))                                                           \
            return refuse(unit, ERROR, "fmi3Set" #NAME " of other variables or of another number of values");          \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (!may_set(unit, variables[references[i]].use))                                                          \
                return in_wrong_mode(unit, "fmi3Set" #NAME);                                                           \
            for (size_t k = 0; k < SIZE_OF(&unit->values, references[i]); k++)                                         \
                unit->values.MEMBER[variables[references[i]].first + k] = *values++;                                   \
        }                                                                                                              \
        return OK;                                                                                                     \
    }

ACCESS(Float32, float, float32, FLOAT32)
ACCESS(Float64, double, float64, FLOAT64)
ACCESS(Int8, int8_t, int8, INT8)
ACCESS(UInt8, uint8_t, uint8, UINT8)
ACCESS(Int16, int16_t, int16, INT16)
ACCESS(UInt16, uint16_t, uint16, UINT16)
ACCESS(Int32, int32_t, int32, INT32)
ACCESS(UInt32, uint32_t, uint32, UINT32)
ACCESS(Int64, int64_t, int64, INT64)
ACCESS(UInt64, uint64_t, uint64, UINT64)
ACCESS(Boolean, bool, boolean, BOOLEAN)

EXPORT3 Status fmi3GetString(void *component, const uint32_t *references, size_t count, const char **values, size_t n)
{
    Unit *unit = component;
    if (!fit(&unit->values, references, count, STRING, n))
        return refuse(unit, ERROR, "fmi3GetString of other variables or of another number of values");
    update(&unit->values);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < SIZE_OF(&unit->values, references[i]); k++)
            *values++ = unit->values.string[variables[references[i]].first + k];
    return OK;
}

EXPORT3 Status fmi3SetString(void *component, const uint32_t *references, size_t count, const char *const *values,
                             size_t n)
{
    Unit *unit = component;
    if (!fit(&unit->values, references, count, STRING, n))
        return refuse(unit, ERROR, "fmi3SetString of other variables or of another number of values");
    for (size_t i = 0; i < count; i++) {
        if (!may_set(unit, variables[references[i]].use))
            return in_wrong_mode(unit, "fmi3SetString");
        for (size_t k = 0; k < SIZE_OF(&unit->values, references[i]); k++)
            snprintf(unit->values.string[variables[references[i]].first + k], TEXT_LENGTH, "%s", *values++);
    }
    return OK;
}

EXPORT3 Status fmi3GetFMUState(void *component, void **state)
{
    if (!*state)
        *state = malloc(sizeof(Unit));
    memcpy(*state, component, sizeof(Unit));
    return OK;
}

EXPORT3 Status fmi3SetFMUState(void *component, void *state)
{
    memcpy(component, state, sizeof(Unit));
    return OK;
}

EXPORT3 Status fmi3FreeFMUState(void *component, void **state)
{
    (void)component;
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT3 Status fmi3GetDirectionalDerivative(void *component, const uint32_t *unknowns, size_t unknown_count,
                                            const uint32_t *knowns, size_t known_count, const double *seed,
                                            size_t seed_count, double *sensitivity, size_t sensitivity_count)
{
    Unit *unit = component;
    if (!fit(&unit->values, unknowns, unknown_count, FLOAT64, sensitivity_count) || !fit(&unit->values, knowns, known_count, FLOAT64, seed_count))
        return refuse(unit, ERROR, "derivatives of other variables or of another number of values");
    for (size_t i = 0; i < unknown_count; i++)
        for (size_t k = 0; k < SIZE_OF(&unit->values, unknowns[i]); k++) {
            const double *direction = seed;
            double sum = 0.0;
            for (size_t j = 0; j < known_count; j++)
                for (size_t l = 0; l < SIZE_OF(&unit->values, knowns[j]); l++)
                    sum += *direction++ * derivative(&unit->values, unknowns[i], k, knowns[j], l);
            *sensitivity++ = sum;
        }
    return OK;
}

#ifdef CONFIGURES
EXPORT3 Status fmi3EnterConfigurationMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != INSTANTIATED)
        return in_wrong_mode(unit, "fmi3EnterConfigurationMode");
    unit->mode = CONFIGURATION;
    return OK;
}

EXPORT3 Status fmi3ExitConfigurationMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != CONFIGURATION)
        return in_wrong_mode(unit, "fmi3ExitConfigurationMode");
    const char *why = configured(&unit->values);
    if (why)
        return refuse(unit, ERROR, why);
    unit->mode = INSTANTIATED;
    return OK;
}
#endif

/* What a library must have and these units do not do. */
#define MISSING(NAME)                                                                                                  \
    EXPORT3 Status NAME(void *component) { return refuse(component, ERROR, #NAME " is not supported"); }
#define NO_INSTANCE(NAME)                                                                                              \
    EXPORT3 void *NAME(void) { return NULL; }

#ifndef HAS_STATES
NO_INSTANCE(fmi3InstantiateModelExchange)
#endif
NO_INSTANCE(fmi3InstantiateScheduledExecution)
MISSING(fmi3Reset)
MISSING(fmi3GetBinary)
#ifndef TAKES_BINARY
MISSING(fmi3SetBinary)
#endif
MISSING(fmi3GetClock)
MISSING(fmi3SetClock)
MISSING(fmi3GetNumberOfVariableDependencies)
MISSING(fmi3GetVariableDependencies)
MISSING(fmi3SerializedFMUStateSize)
MISSING(fmi3SerializeFMUState)
MISSING(fmi3DeserializeFMUState)
MISSING(fmi3GetAdjointDerivative)
#ifndef CONFIGURES
MISSING(fmi3EnterConfigurationMode)
MISSING(fmi3ExitConfigurationMode)
#endif
MISSING(fmi3GetIntervalDecimal)
MISSING(fmi3GetIntervalFraction)
MISSING(fmi3GetShiftDecimal)
MISSING(fmi3GetShiftFraction)
MISSING(fmi3SetIntervalDecimal)
MISSING(fmi3SetIntervalFraction)
MISSING(fmi3SetShiftDecimal)
MISSING(fmi3SetShiftFraction)
MISSING(fmi3EvaluateDiscreteStates)
#ifndef HAS_STATES
MISSING(fmi3EnterContinuousTimeMode)
MISSING(fmi3CompletedIntegratorStep)
MISSING(fmi3SetTime)
MISSING(fmi3SetContinuousStates)
MISSING(fmi3GetContinuousStateDerivatives)
MISSING(fmi3GetEventIndicators)
MISSING(fmi3GetContinuousStates)
MISSING(fmi3GetNominalsOfContinuousStates)
MISSING(fmi3GetNumberOfEventIndicators)
MISSING(fmi3GetNumberOfContinuousStates)
#endif
MISSING(fmi3GetOutputDerivatives)
MISSING(fmi3ActivateModelPartition)
