/* The life of an instance, from its start values to its end. */

static void reset(Instance *instance) {
    State *state = &instance->state;
    memset(state, 0, sizeof *state);
    instance->discarded.is_set = 0;
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

static Instance *create(Logger logger, void *environment) {
    Instance *instance = calloc(1, sizeof(Instance));
    if (!instance) return NULL;
    instance->logger = logger;
    instance->environment = environment;
    instance->signals = signals;
    instance->signal_count = SIGNALS;
    connect_memory(instance);
    reset(instance);
    return instance;
}

static void destroy(Instance *instance) { free(instance); }

static Status set_up(Instance *instance, double start, const double *stop, const double *tolerance) {
    State *state = &instance->state;
    if (state->mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!all_finite(&start, 1)) return REFUSE("the start time is %g s; it must be a finite number", start);
    if (stop && !(all_finite(stop, 1) && *stop > start)) {
        return REFUSE("the stop time is %g s; it must be a finite number above the start time, %g s", *stop, start);
    }
    if (tolerance && !(*tolerance > 0.0 && all_finite(tolerance, 1))) {
        return REFUSE("the tolerance is %g; it must be positive and finite", *tolerance);
    }
    /* Equal steps have no tolerance: their size is the parameter solver.step. */
    const int taken = tolerance && RELATIVE_TOLERANCE > 0.0;
    state->tolerance_factor = taken ? *tolerance / RELATIVE_TOLERANCE : 1.0;
    start_at(state, start);
    state->initialized = 0;
    state->has_stop_time = stop != NULL;
    state->stop_time = stop ? *stop : 0.0;
    return DONE;
}

static Status enter_initialization(Instance *instance) {
    if (instance->state.mode != INSTANTIATED) return REFUSE("initialization mode is entered from the start only");
    instance->state.mode = INITIALIZING;
    return DONE;
}

static int initialized(Instance *instance) { return instance->state.initialized || initialize(instance); }

static Status exit_initialization(Instance *instance) {
    if (instance->state.mode != INITIALIZING) return REFUSE("initialization mode was not entered");
    if (!initialized(instance)) return REFUSE("initialization fails: %s", instance->reason);
    instance->state.mode = STEPPING;
    return DONE;
}

static Status terminate(Instance *instance) {
    const State *state = &instance->state;
    if (state->mode != STEPPING) return REFUSE("only a running unit can be terminated");
    if (!state->contradictory) follow_energy(instance);
    instance->state.mode = TERMINATED;
    report(
        instance, DONE, "%.0f internal steps, %.0f iterations, %.0f tangents, %.0f retries", state->steps,
        state->newton_total, state->tangents, state->retries
    );
    return DONE;
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

/* Advance from the state's time to an end; on failure the state is as it was. */
static int simulate(Instance *instance, double end) {
    State *state = &instance->state;
    const State before = *state;
    const double length = end - state->time, same = same_time(state, length, state->time, end);
    double halt, values[ROOM(INPUTS)];
    COPY(instance->parts.parameters, state->parameters, PARAMETERS);
    COPY(instance->parts.discrete, state->discrete, DISCRETE);
    while (state->time < end) {
        const int left = leave(instance, same, end, &halt);
        const double horizon = left && halt == end ? horizon_of(instance, same, end, length) : halt;
        if (!left || !advance_to(instance, halt, horizon) || !sample(instance, halt + same)) {
            *state = before;
            instance->watch.follows = 0;
            instance->known = NOTHING;
            return 0;
        }
    }
    state->passed = end + same;
    step_functions.run_on(state, end - state->slope_time, values);
    COPY(state->inputs, values, INPUTS);
    for (int i = 0; i < INPUTS; i++) state->slopes[i] = 0.0;
    state->slope_time = end;
    if (AHEAD > 0) *state->ahead = 1.0;
    instance->known = NOTHING;
    return 1;
}

/* Whether parameters that were set while stepping can be together; else there is a reason. */
static int agrees(Instance *instance) { return !instance->state.contradictory || check_parameters(instance); }

/* Whether a step can be made: it must not be lost in the resolution of time nor take too much work. */
static int can_step(Instance *instance, double time, double length) {
    const double least = RESOLVED_STEP * resolution(time, time + length), internal = instance->state.step_size;
    if (!all_finite(&time, 1)) return fail(instance, "the step begins at t = %g s; it must be a finite number", time);
    if (!(length > 0.0) || !all_finite(&length, 1)) {
        return fail(instance, "the step is %g s; it must be positive and finite", length);
    }
    if (length < least) {
        return fail(
            instance, "the step of %g s is lost in the resolution of time at t = %g s; it must be at least %.3g s there",
            length, time, least
        );
    }
    if (length > MOST_STEPS * internal) {
        return fail(
            instance, "the step of %g s is %.3g times the internal step of %g s; it may be %g times as long at most",
            length, length / internal, internal, MOST_STEPS
        );
    }
    return can_sample(instance, time + length);
}

/* A step that could not be made is discarded. Some hosts ask for the same step again, for ever: where nothing was set in
 * between, the second time is an error. */
static Status discard(Instance *instance, double time, double length) {
    const Discarded *before = &instance->discarded;
    if (before->is_set && before->time == time && before->length == length) {
        return REFUSE("%s; the same step was discarded before, and nothing was set since", instance->reason);
    }
    instance->discarded = (Discarded){1, time, length};
    report(instance, DISCARDED, "%s", instance->reason);
    return DISCARDED;
}

static Status step_to(Instance *instance, double time, double length) {
    const State *state = &instance->state;
    if (state->mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    if (!can_step(instance, time, length)) return REFUSE("%s", instance->reason);
    if (!(fabs(time - state->time) <= time_tolerance(length, time, state->time))) {
        return REFUSE("the step begins at t = %.12g s, but the unit is at %.12g s", time, state->time);
    }
    if (state->has_stop_time && time + length > state->stop_time + OVERSHOOT * length) {
        return REFUSE("the step ends at %.12g s, after the stop time of %.12g s", time + length, state->stop_time);
    }
    if (!agrees(instance)) return REFUSE("%s", instance->reason);
    if (!state->energies_followed) follow_energy(instance);
    if (simulate(instance, time + length)) {
        instance->discarded.is_set = 0;
        follow_energy_if_due(instance);
        return DONE;
    }
    return discard(instance, time, length);
}

static Status step(Instance *instance, double time, double length) {
    const Status status = step_to(instance, time, length);
    instance->state.step_status = status;
    return status;
}

static double time_of(const Instance *instance) { return instance->state.time; }

static Status last_step(const Instance *instance) { return (Status)instance->state.step_status; }
