/* The functions of FMI 2.0 for co-simulation. */

#define INSTANCE ((Instance *)component)

static const char *const categories[] = {
    "logAll", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal",
};
#define CATEGORIES (sizeof categories / sizeof *categories)
#define EVERY_STATUS ((1u << CATEGORIES) - 1u)
#define REASONS (1u << fmi2Discard | 1u << fmi2Error | 1u << fmi2Fatal) /* why a call was not done */

/* Copy a message with every % and # doubled: to the logger it is a format, in which both mean something, and there may
 * be text of the host in it. */
static void escape(char *to, size_t room, const char *from) {
    size_t k = 0;
    for (; *from && k + 2 < room; from++) {
        if (*from == '%' || *from == '#') to[k++] = *from;
        to[k++] = *from;
    }
    to[k] = '\0';
}

static void report(Instance *instance, fmi2Status status, const char *format, ...) {
    char message[640], escaped[sizeof message + 160];
    va_list arguments;
    if (!instance->logger || !(instance->logged & 1u << status)) return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    escape(escaped, sizeof escaped, message); /* formatted here: not every importer formats */
    instance->logger(instance->environment, instance->name, status, categories[status], escaped);
}

/* Log a refusal and return fmi2Error. */
#define REFUSE(...) (report(instance, fmi2Error, __VA_ARGS__), fmi2Error)

/* What every call needs: an instance. */
#define WITH_INSTANCE \
    Instance *instance = INSTANCE; \
    if (!instance) return fmi2Error

/* What a call cannot do without: a place that the host gives. */
#define NEED(pointer, what) \
    if (!(pointer)) return REFUSE("there is no place for %s: the pointer is NULL", what)
#define NEED_ARRAYS(count, first, second, what) \
    if ((count) > 0 && (!(first) || !(second))) return REFUSE("there is no place for %s: a pointer is NULL", what)

/* -- life cycle -------------------------------------------------------------------------------------------------- */

static void reset(Instance *instance) {
    State *state = &instance->state;
    memset(state, 0, sizeof *state);
    for (int i = 0; i < VARIABLES; i++) {
        if (variables[i].kind == INPUT) state->inputs[variables[i].index] = variables[i].start;
        if (variables[i].kind == STEP_SIZE) state->step_size = variables[i].start;
    }
    COPY(state->parameters, parameter_starts, PARAMETERS);
    state->tolerance_factor = 1.0;
    start_at(state, 0.0);
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
    instance->logged = logging ? EVERY_STATUS : REASONS;
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
    unsigned chosen = 0;
    if (count > 0 && !names) return REFUSE("there are no names of log categories: the pointer is NULL");
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < CATEGORIES && !(names[i] && strcmp(names[i], categories[k]) == 0)) k++;
        if (k == CATEGORIES) return REFUSE("there is no log category '%.200s'", names[i] ? names[i] : "");
        chosen |= k == 0 ? EVERY_STATUS : 1u << k;
    }
    if (count == 0) chosen = EVERY_STATUS;
    if (logging) {
        instance->logged = chosen;
    } else {
        instance->logged &= ~chosen;
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetupExperiment)(
    fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start, fmi2Boolean has_stop,
    fmi2Real stop
) {
    WITH_INSTANCE;
    if (instance->state.mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!all_finite(&start, 1) || (has_stop && !(all_finite(&stop, 1) && stop > start))) {
        return REFUSE("the experiment from %g s to %g s is refused: it must end after it starts", start, stop);
    }
    if (has_tolerance && !(tolerance > 0.0 && all_finite(&tolerance, 1))) {
        return REFUSE("the tolerance is %g; it must be positive", tolerance);
    }
    /* Equal steps have no tolerance: their size is the parameter solver.step. */
    const int taken = has_tolerance && RELATIVE_TOLERANCE > 0.0;
    instance->state.tolerance_factor = taken ? tolerance / RELATIVE_TOLERANCE : 1.0;
    start_at(&instance->state, start);
    instance->state.initialized = 0;
    instance->state.has_stop_time = has_stop != 0;
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
    report(
        instance, fmi2OK, "%.0f internal steps, %.0f iterations, %.0f retries", instance->state.steps,
        instance->state.newton_total, instance->state.retries
    );
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
#if FORMULATION == PENALTY_BASED
    /* The multipliers of a step balance accelerations that are projected afterwards: both are found anew. */
    double rates[ROOM(STATES)];
    find_motion(&instance->parts, rates);
#endif
    reactions(&instance->parts, instance->reactions);
    shorten_reactions(&instance->parts, instance->reactions);
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
        case NEXT_EVENT: return step_functions.next_event(instance, state->passed, DBL_MAX, DBL_MAX);
    }
    return 0.0;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetReal)(
    fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2Real values[]
) {
    WITH_INSTANCE;
    NEED_ARRAYS(count, references, values, "values");
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

/* The value that a user has given a variable, or its start value. */
static double *place_of(State *state, const Variable *variable) {
    switch (variable->kind) {
        case INPUT: return &state->inputs[variable->index];
        case PARAMETER: return &state->parameters[variable->index];
        default: return &state->step_size;
    }
}

/* Whether a variable may take a value now; says why not. */
static fmi2Status check_value(Instance *instance, const Variable *variable, double value) {
    State *state = &instance->state;
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
    /* Some hosts send all parameters in every step; what changes nothing is no error. */
    const int fixed = variable->kind != INPUT && !variable->tunable;
    if (fixed && state->mode == STEPPING && value != *place_of(state, variable)) {
        return REFUSE("%s is a fixed parameter; it cannot be set after initialization mode", variable->name);
    }
    return fmi2OK;
}

static void set_value(Instance *instance, const Variable *variable, double value) {
    State *state = &instance->state;
    *place_of(state, variable) = value;
    if (variable->kind == INPUT) state->held[variable->index] = 1;
    if (state->mode != STEPPING && variable->kind != STEP_SIZE) state->initialized = 0;
}

/* All values are taken, or none. */
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetReal)(
    fmi2Component component, const fmi2ValueReference references[], size_t count, const fmi2Real values[]
) {
    WITH_INSTANCE;
    NEED_ARRAYS(count, references, values, "values");
    if (instance->state.mode == TERMINATED) return REFUSE("the unit is terminated; nothing can be set");
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = find(instance, references[k]);
        if (!variable || check_value(instance, variable, values[k]) != fmi2OK) return fmi2Error;
    }
    int tuned = 0;
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[references[k]];
        tuned |= variable->kind == PARAMETER && values[k] != *place_of(&instance->state, variable);
        set_value(instance, variable, values[k]);
    }
    /* Accelerations and rates jump with the parameters that they depend on, as they do with inputs. */
    if (tuned && instance->state.mode == STEPPING) make_consistent(instance);
    return fmi2OK;
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

/* Whether a step can be made: it must not be lost in the resolution of time nor take too much work. */
static int can_step(Instance *instance, double time, double step) {
    const double least = RESOLVED_STEP * resolution(time, time + step), internal = instance->state.step_size;
    if (!(step > 0.0) || !all_finite(&step, 1)) return fail(instance, "the step is %g s; it must be positive", step);
    if (!all_finite(&time, 1)) return fail(instance, "the step begins at t = %g s; it must be a finite number", time);
    if (step < least) {
        return fail(
            instance, "the step of %g s is lost in the resolution of time at t = %g s; it must be at least %.3g s there",
            step, time, least
        );
    }
    if (step > MOST_STEPS * internal) {
        return fail(
            instance, "the step of %g s is %.3g times the internal step of %g s; it may be %g times as long at most",
            step, step / internal, internal, MOST_STEPS
        );
    }
    return 1;
}

static fmi2Status step_to(Instance *instance, double time, double step) {
    const State *state = &instance->state;
    if (state->mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    if (!can_step(instance, time, step)) return REFUSE("%s", instance->reason);
    if (!(fabs(time - state->time) <= time_tolerance(step, time, state->time))) {
        return REFUSE("the step begins at t = %.12g s, but the unit is at %.12g s", time, state->time);
    }
    if (state->has_stop_time && time + step > state->stop_time + OVERSHOOT * step) {
        return REFUSE("the step ends at %.12g s, after the stop time of %.12g s", time + step, state->stop_time);
    }
    if (simulate(instance, time + step)) return fmi2OK;
    report(instance, fmi2Discard, "%s", instance->reason);
    return fmi2Discard;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DoStep)(
    fmi2Component component, fmi2Real time, fmi2Real step, fmi2Boolean no_return
) {
    WITH_INSTANCE;
    (void)no_return;
    const fmi2Status status = step_to(instance, time, step);
    instance->state.step_status = status;
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component component) {
    WITH_INSTANCE;
    return REFUSE("there is no step to cancel: steps are done when fmi2DoStep returns");
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component component, fmi2StatusKind kind, fmi2Status *value) {
    WITH_INSTANCE;
    NEED(value, "a status");
    if (kind != fmi2DoStepStatus) return REFUSE("this status is not of type fmi2Status");
    *value = (fmi2Status)instance->state.step_status;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component component, fmi2StatusKind kind, fmi2Real *value) {
    WITH_INSTANCE;
    NEED(value, "a status");
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
    NEED(value, "a status");
    if (kind != fmi2Terminated) return REFUSE("this status is not of type Boolean");
    *value = 0; /* the unit never ends a simulation by itself */
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component component, fmi2StatusKind kind, fmi2String *value) {
    WITH_INSTANCE;
    NEED(value, "a status");
    if (kind != fmi2PendingStatus) return REFUSE("this status is not of type String");
    *value = "";
    return fmi2OK;
}
