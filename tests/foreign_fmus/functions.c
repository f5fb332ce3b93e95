/* The functions of FMI 2.0 for co-simulation, for all FMUs of this folder. */

/* What a function that gets or sets says for an FMU that may refuse it. */
#ifndef MOOD
#define MOOD(unit, function) fmi2OK
#endif

static fmi2Status refuse(Unit *unit, fmi2Status status, const char *why)
{
    if (unit && unit->logger)
        unit->logger(unit->environment, unit->name, status, status == fmi2Discard ? "logStatusDiscard" : "logStatusError",
                     why);
    return status;
}

/* After a fatal error nothing may be called any more, not even fmi2FreeInstance. */
static void note_life(Unit *unit)
{
    if (unit && unit->dead)
        refuse(unit, fmi2Error, "called after a fatal error");
}

static fmi2Status missing(fmi2Component component, const char *function)
{
    char why[TEXT_LENGTH];
    snprintf(why, sizeof why, "%s is not supported", function);
    return refuse(component, fmi2Error, why);
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component component, fmi2Boolean on, size_t count,
                                           const fmi2String categories[])
{
    (void)component, (void)on, (void)count, (void)categories;
    return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                          const fmi2CallbackFunctions *callbacks, fmi2Boolean visible,
                                          fmi2Boolean logging)
{
    (void)resources, (void)visible, (void)logging;
    Unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    snprintf(unit->name, sizeof unit->name, "%s", name);
    unit->logger = callbacks->logger;
    unit->environment = callbacks->componentEnvironment;
    if (type != fmi2CoSimulation || strcmp(guid, FMU_GUID) != 0) {
        refuse(unit, fmi2Error, "the description is that of another FMU");
        free(unit);
        return NULL;
    }
    start(&unit->values);
    return unit;
}

EXPORT void fmi2FreeInstance(fmi2Component component)
{
    note_life(component);
    free(component);
}

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance,
                                           fmi2Real begin, fmi2Boolean has_stop, fmi2Real stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    ((Unit *)component)->values.time = begin;
    return fmi2OK;
}

EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component component)
{
    (void)component;
    return fmi2OK;
}

EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component component)
{
    update(&((Unit *)component)->values);
    ((Unit *)component)->initialized = 1;
    return fmi2OK;
}

EXPORT fmi2Status fmi2Terminate(fmi2Component component)
{
    note_life(component);
    if (!((Unit *)component)->initialized)
        refuse(component, fmi2Warning, "terminated before it was initialized");
    return fmi2OK;
}

EXPORT fmi2Status fmi2Reset(fmi2Component component)
{
    Values *values = &((Unit *)component)->values;
    ((Unit *)component)->initialized = 0;
    memset(values, 0, sizeof *values);
    start(values);
    return fmi2OK;
}

#define GET_AND_SET(Type, field, COUNT)                                                                                \
    EXPORT fmi2Status fmi2Get##Type(fmi2Component component, const fmi2ValueReference references[], size_t count, \
                                         fmi2##Type out[])                                                             \
    {                                                                                                                  \
        Unit *unit = component;                                                                                        \
        note_life(unit);                                                                                               \
        update(&unit->values);                                                                                         \
        if (MOOD(unit, "fmi2Get" #Type) != fmi2OK)                                                                     \
            return refuse(unit, MOOD(unit, "fmi2Get" #Type), "it does not like fmi2Get" #Type);                        \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (references[i] >= (COUNT))                                                                              \
                return refuse(unit, fmi2Error, "there is no such " #Type);                                             \
            out[i] = unit->values.field[references[i]];                                                                \
        }                                                                                                              \
        return fmi2OK;                                                                                                 \
    }                                                                                                                  \
    EXPORT fmi2Status fmi2Set##Type(fmi2Component component, const fmi2ValueReference references[], size_t count, \
                                         const fmi2##Type in[])                                                        \
    {                                                                                                                  \
        Unit *unit = component;                                                                                        \
        if (MOOD(unit, "fmi2Set" #Type) != fmi2OK)                                                                     \
            return refuse(unit, MOOD(unit, "fmi2Set" #Type), "it does not like fmi2Set" #Type);                        \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (references[i] >= (COUNT))                                                                              \
                return refuse(unit, fmi2Error, "there is no such " #Type);                                             \
            STORE_##Type(unit->values.field[references[i]], in[i]);                                                    \
        }                                                                                                              \
        return fmi2OK;                                                                                                 \
    }

#define STORE_Real(place, value) (place) = (value)
#define STORE_Integer(place, value) (place) = (value)
#define STORE_Boolean(place, value) (place) = (value)
#define STORE_String(place, value) snprintf((place), TEXT_LENGTH, "%s", (value))

GET_AND_SET(Real, real, REALS)
GET_AND_SET(Integer, integer, INTEGERS)
GET_AND_SET(Boolean, boolean, BOOLEANS)
GET_AND_SET(String, text, TEXTS)

EXPORT fmi2Status fmi2DoStep(fmi2Component component, fmi2Real time, fmi2Real step, fmi2Boolean no_set_state)
{
    Unit *unit = component;
    char why[TEXT_LENGTH] = "";
    note_life(unit);
    unit->values.final = no_set_state;
    if (no_set_state)
        unit->flushed = time;
    fmi2Status status = advance(&unit->values, time, step, why);
    unit->dead = status == fmi2Fatal;
    if (status != fmi2OK)
        refuse(unit, status, why);
    if (status <= fmi2Warning)
        unit->values.time = time + step;
    return status;
}

EXPORT fmi2Status fmi2CancelStep(fmi2Component component) { return missing(component, "fmi2CancelStep"); }

EXPORT fmi2Status fmi2GetStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)kind, (void)value;
    return missing(component, "fmi2GetStatus");
}

EXPORT fmi2Status fmi2GetRealStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Real *value)
{
    if (kind != fmi2LastSuccessfulTime)
        return missing(component, "fmi2GetRealStatus");
    *value = ((Unit *)component)->values.time;
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetIntegerStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Integer *value)
{
    (void)kind, (void)value;
    return missing(component, "fmi2GetIntegerStatus");
}

EXPORT fmi2Status fmi2GetBooleanStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Boolean *value)
{
    if (kind != fmi2Terminated)
        return missing(component, "fmi2GetBooleanStatus");
    *value = ((Unit *)component)->values.ended;
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetStringStatus(fmi2Component component, const fmi2StatusKind kind, fmi2String *value)
{
    (void)kind, (void)value;
    return missing(component, "fmi2GetStringStatus");
}

EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component component, const fmi2ValueReference references[],
                                                   size_t count, const fmi2Integer orders[], const fmi2Real values[])
{
    (void)references, (void)count, (void)orders, (void)values;
    return missing(component, "fmi2SetRealInputDerivatives");
}

EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component component, const fmi2ValueReference references[],
                                                    size_t count, const fmi2Integer orders[], fmi2Real values[])
{
    (void)references, (void)count, (void)orders, (void)values;
    return missing(component, "fmi2GetRealOutputDerivatives");
}

EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component component, const fmi2ValueReference unknowns[],
                                                    size_t unknown_count, const fmi2ValueReference knowns[],
                                                    size_t known_count, const fmi2Real seed[], fmi2Real sensitivity[])
{
#ifdef GIVES_DERIVATIVES
    for (size_t row = 0; row < unknown_count; row++) {
        sensitivity[row] = 0.0;
        for (size_t column = 0; column < known_count; column++)
            sensitivity[row] += seed[column] * slope(&((Unit *)component)->values, unknowns[row], knowns[column]);
    }
    return fmi2OK;
#else
    (void)unknowns, (void)unknown_count, (void)knowns, (void)known_count, (void)seed, (void)sensitivity;
    return missing(component, "fmi2GetDirectionalDerivative");
#endif
}

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component component, fmi2FMUstate *state)
{
    if (!HAS_STATE)
        return missing(component, "fmi2GetFMUstate");
    if (!*state)
        *state = malloc(sizeof(Values));
    if (!*state)
        return refuse(component, fmi2Error, "there is no memory for the state");
    memcpy(*state, &((Unit *)component)->values, sizeof(Values));
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetFMUstate(fmi2Component component, fmi2FMUstate state)
{
    if (!HAS_STATE)
        return missing(component, "fmi2SetFMUstate");
    Unit *unit = component;
    const Values *values = state;
    note_life(unit);
    if (values->time < unit->flushed - 1e-9)
        return refuse(unit, fmi2Error, "a state is set that is from before what was said to stay");
    memcpy(&unit->values, values, sizeof(Values));
    return fmi2OK;
}

EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component component, fmi2FMUstate *state)
{
    if (!HAS_STATE)
        return missing(component, "fmi2FreeFMUstate");
    note_life(component);
    free(*state);
    *state = NULL;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component component, fmi2FMUstate state, size_t *size)
{
    (void)state, (void)size;
    return missing(component, "fmi2SerializedFMUstateSize");
}

EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component component, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    (void)state, (void)bytes, (void)size;
    return missing(component, "fmi2SerializeFMUstate");
}

EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component component, const fmi2Byte bytes[], size_t size,
                                               fmi2FMUstate *state)
{
    (void)bytes, (void)size, (void)state;
    return missing(component, "fmi2DeSerializeFMUstate");
}
