/* The functions of FMI 2.0 for co-simulation. */

#define INSTANCE ((Instance *)component)
#define OVERSHOOT 1e-6 /* share of a step by which the end of the last one may exceed the stop time */

static const char *const categories[] = {
    "logAll", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal", "logAll",
};

static void report(Instance *instance, fmi2Status status, const char *format, ...) {
    char message[640];
    va_list arguments;
    if (!instance->logger) return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    /* Formatted here: not every importer formats. Nothing in our messages looks like a format. */
    instance->logger(instance->environment, instance->name, status, categories[status], message);
}

/* Log a refusal and return fmi2Error. */
#define REFUSE(...) (report(instance, fmi2Error, __VA_ARGS__), fmi2Error)

/* What every call needs: an instance. */
#define WITH_INSTANCE \
    Instance *instance = INSTANCE; \
    if (!instance) return fmi2Error

/* -- life cycle -------------------------------------------------------------------------------------------------- */

static void reset(Instance *instance) {
    State *state = &instance->state;
    memset(state, 0, sizeof *state);
    for (int i = 0; i < VARIABLES; i++) {
        if (variables[i].kind == INPUT) state->inputs[variables[i].index] = variables[i].start;
        if (variables[i].kind == STEP_SIZE) state->step_size = variables[i].start;
    }
    COPY(state->parameters, parameter_starts, PARAMETERS);
    state->mode = INSTANTIATED;
    instance->known = NOTHING;
}

FMI2_EXPORT const char *FMI2_NAME(fmi2GetTypesPlatform)(void) { return "default"; }

FMI2_EXPORT const char *FMI2_NAME(fmi2GetVersion)(void) { return "2.0"; }

FMI2_EXPORT fmi2Component FMI2_NAME(fmi2Instantiate)(
    fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *callbacks,
    fmi2Boolean visible, fmi2Boolean logging
) {
    Instance *instance = calloc(1, sizeof(Instance));
    (void)resources; /* everything is in the binary */
    (void)visible;
    if (!instance) return NULL;
    if (callbacks) {
        instance->logger = callbacks->logger;
        instance->environment = callbacks->componentEnvironment;
    }
    instance->logging = logging;
    snprintf(instance->name, sizeof instance->name, "%s", name ? name : "");
    const char *refused = NULL;
    if (!name || !*name) refused = "the instance needs a name";
    if (type != fmi2CoSimulation) refused = "this unit is for co-simulation, not for model exchange";
    if (!guid || strcmp(guid, MODEL_GUID) != 0) {
        report(instance, fmi2Error, "the GUID is %s; this unit has %s", guid ? guid : "missing", MODEL_GUID);
        free(instance);
        return NULL;
    }
    if (refused) {
        report(instance, fmi2Error, "%s", refused);
        free(instance);
        return NULL;
    }
    connect_memory(instance);
    reset(instance);
    return instance;
}

FMI2_EXPORT void FMI2_NAME(fmi2FreeInstance)(fmi2Component component) { free(component); }

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetDebugLogging)(
    fmi2Component component, fmi2Boolean logging, size_t count, const fmi2String names[]
) {
    WITH_INSTANCE;
    for (size_t i = 0; i < count; i++) {
        int known = 0;
        for (size_t k = 0; k < sizeof categories / sizeof *categories; k++) {
            if (names[i] && strcmp(names[i], categories[k]) == 0) known = 1;
        }
        if (!known) return REFUSE("there is no log category '%s'", names[i] ? names[i] : "");
    }
    instance->logging = logging;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetupExperiment)(
    fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start, fmi2Boolean has_stop,
    fmi2Real stop
) {
    WITH_INSTANCE;
    (void)has_tolerance; /* the internal step is fixed: it is the parameter solver.step */
    (void)tolerance;
    if (instance->state.mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!all_finite(&start, 1) || (has_stop && !(stop > start))) {
        return REFUSE("the experiment from %g s to %g s is refused: it must end after it starts", start, stop);
    }
    instance->state.time = instance->state.slope_time = start;
    instance->state.initialized = 0;
    instance->state.has_stop_time = has_stop;
    instance->state.stop_time = has_stop ? stop : 0.0;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterInitializationMode)(fmi2Component component) {
    WITH_INSTANCE;
    if (instance->state.mode != INSTANTIATED) return REFUSE("initialization mode is entered from the start only");
    instance->state.mode = INITIALIZING;
    return fmi2OK;
}

static int initialized(Instance *instance) { return instance->state.initialized || initialize(instance); }

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2ExitInitializationMode)(fmi2Component component) {
    WITH_INSTANCE;
    if (instance->state.mode != INITIALIZING) return REFUSE("initialization mode was not entered");
    if (!initialized(instance)) return REFUSE("initialization fails: %s", instance->reason);
    instance->state.mode = STEPPING;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Terminate)(fmi2Component component) {
    WITH_INSTANCE;
    if (instance->state.mode != STEPPING) return REFUSE("only a running unit can be terminated");
    instance->state.mode = TERMINATED;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Reset)(fmi2Component component) {
    WITH_INSTANCE;
    reset(instance);
    return fmi2OK;
}

/* -- values ------------------------------------------------------------------------------------------------------ */

static const Variable *find(Instance *instance, fmi2ValueReference reference) {
    if (reference < VARIABLES) return &variables[reference];
    report(instance, fmi2Error, "there is no Real variable with value reference %u", reference);
    return NULL;
}

/* Make everything that can be read fit the parameters and inputs of now. */
static int up_to_date(Instance *instance) {
    if (!initialized(instance)) return 0;
    refresh(instance);
    if (instance->known == NOTHING) {
        load(instance);
        step_functions.outputs(&instance->parts, instance->outputs, instance->violation);
        instance->known = OUTPUTS_KNOWN;
    }
    return 1;
}

/* Reactions are found when they are asked for: most users do without. */
static void find_reactions(Instance *instance) {
    if (instance->known == EVERYTHING_KNOWN) return;
    load(instance);
    reactions(&instance->parts, instance->reactions);
    instance->known = EVERYTHING_KNOWN;
}

static double value_of(const Instance *instance, const Variable *variable) {
    const State *state = &instance->state;
    const int i = variable->index;
    switch (variable->kind) {
        case INPUT: return state->effective[i];
        case COORDINATE: return state->coordinates[i];
        case VELOCITY: return state->velocities[i];
        case ACCELERATION: return state->accelerations[i];
        case STATE: return state->states[i];
        case INTEGRAL: return state->integrals[i];
        case OUTPUT: return instance->outputs[i];
        case REACTION: return instance->reactions[i];
        case VIOLATION: return instance->violation[i];
        case PARAMETER: return state->parameters[i];
        case CALCULATED: return state->calculated[i];
        case STEP_SIZE: return state->step_size;
        case NEXT_EVENT: return step_functions.next_event(instance, state->time, DBL_MAX, 0.0);
    }
    return 0.0;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetReal)(
    fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2Real values[]
) {
    WITH_INSTANCE;
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = find(instance, references[k]);
        if (!variable) return fmi2Error;
        if (variable->kind == STEP_SIZE || variable->kind == NEXT_EVENT) {
            values[k] = value_of(instance, variable);
            continue;
        }
        if (!up_to_date(instance)) return REFUSE("%s cannot be computed: %s", variable->name, instance->reason);
        if (variable->kind == REACTION) find_reactions(instance);
        values[k] = value_of(instance, variable);
    }
    return fmi2OK;
}

static fmi2Status set_value(Instance *instance, const Variable *variable, double value) {
    State *state = &instance->state;
    const int fixed = variable->kind == PARAMETER || variable->kind == STEP_SIZE;
    if (!variable->settable) return REFUSE("%s is computed and cannot be set", variable->name);
    if (!all_finite(&value, 1)) return REFUSE("%s = %g is refused: it must be a finite number", variable->name, value);
    if (value < variable->minimum || value > variable->maximum) {
        char allowed[80];
        if (variable->maximum == DBL_MAX) {
            snprintf(allowed, sizeof allowed, "at least %g", variable->minimum);
        } else if (variable->minimum == -DBL_MAX) {
            snprintf(allowed, sizeof allowed, "at most %g", variable->maximum);
        } else {
            snprintf(allowed, sizeof allowed, "between %g and %g", variable->minimum, variable->maximum);
        }
        return REFUSE("%s = %g %s is refused: it must be %s", variable->name, value, variable->unit, allowed);
    }
    if (fixed && state->mode != INSTANTIATED && state->mode != INITIALIZING) {
        return REFUSE("%s is a fixed parameter; it cannot be set after initialization mode", variable->name);
    }
    if (variable->kind == INPUT) {
        state->inputs[variable->index] = value;
        state->slopes[variable->index] = 0.0;
        state->held[variable->index] = 1;
    } else if (variable->kind == PARAMETER) {
        state->parameters[variable->index] = value;
    } else {
        state->step_size = value;
    }
    if (state->mode != STEPPING && variable->kind != STEP_SIZE) state->initialized = 0;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetReal)(
    fmi2Component component, const fmi2ValueReference references[], size_t count, const fmi2Real values[]
) {
    WITH_INSTANCE;
    if (instance->state.mode == TERMINATED) return REFUSE("the unit is terminated; nothing can be set");
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = find(instance, references[k]);
        if (!variable || set_value(instance, variable, values[k]) != fmi2OK) return fmi2Error;
    }
    return fmi2OK;
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DoStep)(
    fmi2Component component, fmi2Real time, fmi2Real step, fmi2Boolean no_return
) {
    WITH_INSTANCE;
    State *state = &instance->state;
    (void)no_return;
    if (state->mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    if (!(step > 0.0) || !all_finite(&step, 1)) return REFUSE("the step is %g s; it must be positive", step);
    if (!(fabs(time - state->time) <= SAME_TIME * step)) {
        return REFUSE("the step begins at t = %.12g s, but the unit is at %.12g s", time, state->time);
    }
    if (state->has_stop_time && time + step > state->stop_time + OVERSHOOT * step) {
        return REFUSE("the step ends at %.12g s, after the stop time of %.12g s", time + step, state->stop_time);
    }
    if (!simulate(instance, time + step)) {
        report(instance, fmi2Discard, "%s", instance->reason);
        return fmi2Discard;
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component component) {
    WITH_INSTANCE;
    return REFUSE("there is no step to cancel: steps are done when fmi2DoStep returns");
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component component, fmi2StatusKind kind, fmi2Status *value) {
    WITH_INSTANCE;
    if (kind != fmi2DoStepStatus) return REFUSE("this status is not of type fmi2Status");
    *value = fmi2OK;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component component, fmi2StatusKind kind, fmi2Real *value) {
    WITH_INSTANCE;
    if (kind != fmi2LastSuccessfulTime) return REFUSE("this status is not of type Real");
    *value = instance->state.time;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetIntegerStatus)(
    fmi2Component component, fmi2StatusKind kind, fmi2Integer *value
) {
    WITH_INSTANCE;
    (void)kind;
    (void)value;
    return REFUSE("there is no status of type Integer");
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetBooleanStatus)(
    fmi2Component component, fmi2StatusKind kind, fmi2Boolean *value
) {
    WITH_INSTANCE;
    if (kind != fmi2Terminated) return REFUSE("this status is not of type Boolean");
    *value = 0; /* the unit never ends a simulation by itself */
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component component, fmi2StatusKind kind, fmi2String *value) {
    WITH_INSTANCE;
    if (kind != fmi2PendingStatus) return REFUSE("this status is not of type String");
    *value = "";
    return fmi2OK;
}
