/* Values of variables: read, and set. */

/* Bring the state to the point, the parameters and the inputs of now. */
static int is_located(Instance *instance) {
    if (!initialized(instance) || !agrees(instance)) return 0;
    if (AT_POINT(&instance->state)) return arrive(instance);
    refresh(instance);
    return 1;
}

/* Make everything that can be read fit the parameters and inputs of now. */
static int up_to_date(Instance *instance) {
    if (!is_located(instance)) return 0;
    if (instance->known != NOTHING) return 1;
    find_outputs(instance);
    /* Energies are followed from step to step: points of a host's solver may be trials. */
    if (is_running(&instance->state) && !AT_POINT(&instance->state)) follow_energy(instance);
    return 1;
}

#if MODEL_EXCHANGE

/* The value of a continuous state that is no other variable, or of the rate of any. */
static double value_of_flow(const Instance *instance, const Variable *variable) {
    double values[ROOM(POINT)];
    if (variable->kind == DERIVATIVE) {
        flow_functions.pack_rates(&instance->state, values);
    } else {
        flow_functions.pack(&instance->state, values);
    }
    return values[variable->index];
}

#else

static double value_of_flow(const Instance *instance, const Variable *variable) {
    (void)instance;
    (void)variable;
    return 0.0;
}

#endif

#if INDICATORS > 0

/* Find the event indicators at the state: each is moved away from zero by its hysteresis, to the side where it was at the
 * last event, so that what rests at a zero makes no events. */
static void find_indicators(Instance *instance, double *values) {
    load(instance);
    event_indicators(&instance->parts, values);
    for (int k = 0; k < INDICATORS; k++) {
        values[k] += instance->state.below[k] ? -indicator_hysteresis[k] : indicator_hysteresis[k];
    }
}

static double value_of_indicator(Instance *instance, const Variable *variable) {
    double values[INDICATORS];
    find_indicators(instance, values);
    return values[variable->index];
}

#else

static double value_of_indicator(Instance *instance, const Variable *variable) {
    (void)instance;
    (void)variable;
    return 0.0;
}

#endif

static double value_of(Instance *instance, const Variable *variable) {
    const State *state = &instance->state;
    const int i = variable->index;
    int worst;
    switch (variable->kind) {
        case INPUT: return state->effective[i];
        case COORDINATE: return state->coordinates[i];
        case VELOCITY: return state->velocities[i];
        case ACCELERATION: return state->accelerations[i];
        case STATE: return state->states[i];
        case HELD: return state->discrete[i];
        case INTEGRAL: return state->integrals[i];
        case OUTPUT: return instance->outputs[i];
        case REACTION: return instance->reactions[i];
        case VIOLATION: return instance->violation[i];
        case OF_SOLVER: return state->unconverged[i];
        case PARAMETER: return state->parameters[i];
        case CALCULATED: return state->calculated[i];
        case STEP_SIZE: return state->step_size;
        case ERROR_SHARE: return error_share(state, &worst);
        case NEXT_EVENT: return next_event_after(instance, state->passed, state->passed);
        case CONTINUOUS_STATE:
        case DERIVATIVE: return value_of_flow(instance, variable);
        case INDICATOR: return value_of_indicator(instance, variable);
    }
    return 0.0;
}

/* Whether a variable says how steps are made, and nothing of the model. */
static int is_setting(const Variable *variable) { return variable->kind == STEP_SIZE; }

static Status get(Instance *instance, const unsigned *indices, size_t count, double *values) {
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[indices[k]];
        const int anytime = is_setting(variable) || variable->kind == NEXT_EVENT || variable->kind == ERROR_SHARE;
        /* Parameters can be read where they contradict each other. */
        const int given = variable->kind == PARAMETER || variable->kind == CALCULATED;
        if (!(anytime || (given ? initialized(instance) : up_to_date(instance)))) {
            return REFUSE("%s cannot be computed: %s", variable->name, instance->reason);
        }
        if (variable->kind == REACTION) find_reactions(instance);
        values[k] = value_of(instance, variable);
        if (!(anytime || all_finite(&values[k], 1))) {
            return REFUSE("%s is %g at t = %.9g s: it is no number there", variable->name, values[k], instance->state.time);
        }
    }
    return DONE;
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
static Status check_value(Instance *instance, const Variable *variable, double value) {
    State *state = &instance->state;
    const char *space = strcmp(variable->unit, "1") ? " " : "", *unit = *space ? variable->unit : "";
    const int leads = can_lead(state, (unsigned)(variable - variables));
    if (!variable->settable && !leads) return REFUSE("%s is computed and cannot be set", variable->name);
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
        return REFUSE("%s = %g%s%s is refused: it must be %s", variable->name, value, space, unit, allowed);
    }
    if (!(fabs(value) <= LARGEST)) {
        return REFUSE(
            "%s = %g%s%s is refused: its magnitude must be at most %g", variable->name, value, space, unit, LARGEST
        );
    }
    if (leads) return DONE;
    /* Some hosts send all parameters in every step; what changes nothing is no error. */
    const int fixed = variable->kind != INPUT && !variable->tunable;
    if (IN_CONTINUOUS_TIME(state) && variable->kind != INPUT && value != *place_of(state, variable)) {
        return REFUSE("%s is a parameter; while a host integrates it is set in event mode only", variable->name);
    }
    if (fixed && is_running(state) && value != *place_of(state, variable)) {
        return REFUSE("%s is a fixed parameter; it cannot be set after initialization mode", variable->name);
    }
    return DONE;
}

/* Something was set: what was integrated ahead does not hold, and steps may not go past the next one's end. */
static void touch(State *state) { memset(state->ahead, 0, sizeof state->ahead); }

static void set_value(Instance *instance, const Variable *variable, double value) {
    State *state = &instance->state;
    if (value != *place_of(state, variable)) instance->discarded.is_set = 0;
    if (variable->kind == INPUT && !(state->held[variable->index] && value == *place_of(state, variable))) touch(state);
    *place_of(state, variable) = value;
    if (variable->kind == INPUT) state->held[variable->index] = 1;
    if (!is_running(state) && !is_setting(variable)) state->initialized = 0;
}

static Status set(Instance *instance, const unsigned *indices, size_t count, const double *values) {
    if (instance->state.mode == TERMINATED) return REFUSE("the FMU is terminated; nothing can be set");
    State *state = &instance->state;
    int tuned = 0;
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[indices[k]];
        if (check_value(instance, variable, values[k]) != DONE) return REFUSED;
        tuned |= variable->kind == PARAMETER && values[k] != *place_of(state, variable);
    }
    tuned &= is_running(state);
    if (tuned && !state->contradictory) shift_drift(instance, -1.0);
    for (size_t k = 0; k < count; k++) {
        if (can_lead(state, indices[k])) {
            lead_state(instance, indices[k], values[k]);
        } else {
            set_value(instance, &variables[indices[k]], values[k]);
            if (AT_POINT(state)) leave_point(instance);
        }
    }
    if (!tuned) return DONE;
    touch(state);
    instance->known = NOTHING;
    /* Of two parameters that belong together one may be set first: until they can be together no step is made. */
    state->contradictory = !check_parameters(instance);
    if (state->contradictory) return DONE;
    /* Accelerations and rates jump with the parameters that they depend on, as they do with inputs. */
    make_consistent(instance);
    shift_drift(instance, 1.0);
    return DONE;
}
