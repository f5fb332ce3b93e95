/* The life of an instance, from its start values to its end. */

#if MODEL_EXCHANGE
#define FOR_STEPS(what) \
    if (instance->exchanges) return REFUSE("this instance is for model exchange: %s by its host", what)
#else
#define FOR_STEPS(what)
#endif

static Status reset(Instance *instance) {
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
#if MODEL_EXCHANGE
    state->exchanges = instance->exchanges;
    instance->flow_known = 0;
#endif
    instance->known = NOTHING;
    return DONE;
}

static Instance *create(Logger logger, void *environment, const char *resources) {
    (void)resources; /* everything is in the binary */
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

static void destroy(Instance *instance) {
    free(instance);
}

static Status set_up(Instance *instance, double start, const double *stop, const double *tolerance) {
    State *state = &instance->state;
    Reason reason;
    if (state->mode != INSTANTIATED) return REFUSE("the experiment can only be set up before initialization");
    if (!check_experiment(&reason, start, stop, tolerance)) return REFUSE("%s", reason.text);
    /* Equal steps have no tolerance: their size is the parameter solver.step. */
    const int taken = tolerance && RELATIVE_TOLERANCE > 0.0;
    state->tolerance_factor = taken ? *tolerance / RELATIVE_TOLERANCE : 1.0;
    start_at(state, start);
    state->initialized = 0;
    state->has_stop_time = stop && isfinite(*stop);
    state->stop_time = state->has_stop_time ? *stop : 0.0;
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
    begin_conditions(instance);
#if MODEL_EXCHANGE
    if (instance->exchanges) {
        instance->state.mode = AT_EVENTS;
        begin_at_state(instance);
    }
#endif
    return DONE;
}

static Status terminate(Instance *instance) {
    const State *state = &instance->state;
    if (!is_running(state)) return REFUSE("only a running unit can be terminated");
    if (!state->contradictory && arrive(instance)) {
        follow_energy(instance);
        follow_conditions(instance);
    }
    report_drifts(instance);
    report_conditions(instance);
    report_error_estimate(instance);
    instance->state.mode = TERMINATED;
    report(
        instance, DONE, "%.0f internal steps, %.0f iterations, %.0f iteration matrices, %.0f retries", state->steps,
        state->newton_total, state->iteration_matrices, state->retries
    );
    return DONE;
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

static int is_at_event(const Instance *instance) {
    const State *state = &instance->state;
    return some_ticking(state) || next_event_after(instance, state->passed, state->sampled) <= state->due;
}

/* Let the events of the present happen. */
static int pass(Instance *instance) {
    State *state = &instance->state;
    if (!sample(instance, state->due)) return 0;
    state->passed = state->due;
    return 1;
}

/* Advance from the state's time to an end, or to an event before it where the step may end there; tells whether there is
 * an event where it has ended, which is held if that is wanted. */
static int simulate(Instance *instance, double end, int ends_at_events, int holds_events, int *event) {
    State *state = &instance->state;
    const double length = end - state->time, same = same_time(state, length, state->time, end);
    double halt;
    COPY(instance->parts.parameters, state->parameters, PARAMETERS);
    COPY(instance->parts.discrete, state->discrete, DISCRETE);
    while (state->time < end) {
        if (!leave(instance, same, end, &halt)) return 0;
        const double horizon = halt == end ? horizon_of(instance, same, end, length) : halt;
        if (!advance_to(instance, halt, horizon)) return 0;
        if (halt < end && ends_at_events) break;
        if (halt < end && !sample(instance, halt + same)) return 0;
    }
    state->due = state->time + same;
    *event = is_at_event(instance);
    if (!(*event && holds_events) && !pass(instance)) return 0;
    carry_inputs(state);
    if (AHEAD > 0) *state->ahead = 1.0;
    instance->known = NOTHING;
    return 1;
}

/* Advance by internal steps, before and after each of which the host is told. */
static int simulate_in_company(Instance *instance, double end, const Wishes *wishes) {
    const State *state = &instance->state;
    const double begin = state->time, count = count_steps(begin, end, state->step_size);
    double until = end;
    for (double k = 1.0; until - state->time >= larger(RESOLVED_STEP * resolution(state->time, until), LEAST_STEP); k += 1.0) {
        const double grid = k < count ? begin + k * (end - begin) / count : end, next = smaller(grid, until);
        const int holds = wishes->holds_events && (wishes->ends_at_events || next == end);
        int event;
        wishes->begins(wishes->host, next);
        if (!simulate(instance, next, wishes->ends_at_events, holds, &event)) return 0;
        until = smaller(until, wishes->ended(wishes->host, state->time));
        if (event && wishes->ends_at_events) return 1;
    }
    return 1;
}

/* Make a step as a host wants it; on failure the state is as it was. */
static int simulate_as(Instance *instance, double end, const Wishes *wishes) {
    State *const before = &instance->waiting[BEFORE_STEP];
    int event;
    copy_but_iteration_matrix(before, &instance->state);
    instance->has_replaced = 0;
    const int made = wishes->begins
        ? simulate_in_company(instance, end, wishes)
        : simulate(instance, end, wishes->ends_at_events, wishes->holds_events, &event);
    if (made) return 1;
    copy_but_iteration_matrix(&instance->state, before);
    if (instance->has_replaced) COPY(instance->state.iteration_matrix, instance->replaced, ITERATION_MATRIX);
    instance->watch.follows = 0;
    instance->known = NOTHING;
    return 0;
}

/* Whether parameters that were set while stepping can be together; else there is a reason. */
static int agrees(Instance *instance) { return !instance->state.contradictory || check_parameters(instance); }

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

static Status step_to(Instance *instance, double time, double length, const Wishes *wishes) {
    const State *state = &instance->state;
    Reason reason;
    FOR_STEPS("steps are made");
    if (state->mode == AT_EVENTS) return REFUSE("a step needs an FMU that is not in event mode");
    if (state->mode != STEPPING) return REFUSE("a step needs an initialized unit that is not terminated");
    const double *stop = state->has_stop_time ? &state->stop_time : NULL;
    if (!check_step(&reason, state->time, time, length, state->step_size, stop)) return REFUSE("%s", reason.text);
    if (!can_sample(instance, time + length)) return REFUSE("%s", instance->reason);
    if (!ticks_made(instance, time + length)) return REFUSE("%s", instance->reason);
    if (!agrees(instance)) return REFUSE("%s", instance->reason);
    if (!state->energies_followed) follow_energy(instance);
    if (!state->communications) follow_conditions(instance);
    if (wishes->stays || !instance->was_saved) {
        report_drifts(instance);
        report_conditions(instance);
    }
    if (simulate_as(instance, time + length, wishes)) {
        instance->discarded.is_set = 0;
        follow_energy_if_due(instance);
        follow_conditions(instance);
        return DONE;
    }
    report_drifts(instance);
    report_conditions(instance);
    return discard(instance, time, length);
}

static Status step(Instance *instance, double time, double length, const Wishes *wishes) {
    static const Wishes none = {0};
    const Status status = step_to(instance, time, length, wishes ? wishes : &none);
    instance->state.step_status = status;
    return status;
}

static double time_of(const Instance *instance) { return instance->state.time; }

static Status last_step(const Instance *instance) { return (Status)instance->state.step_status; }

/* -- events ------------------------------------------------------------------------------------------------------ */

static Status enter_events(Instance *instance) {
    if (instance->state.mode != STEPPING) return REFUSE("event mode is entered from step mode only");
    instance->state.mode = AT_EVENTS;
    return DONE;
}

static Status exit_events(Instance *instance) {
    if (instance->state.mode != AT_EVENTS) return REFUSE("event mode was not entered");
    if (some_ticking(&instance->state)) return REFUSE("clocks that are set wait for new discrete states; steps come after these");
    instance->state.mode = STEPPING;
    return DONE;
}

static Status pass_events(Instance *instance, int *some, double *next) {
    State *state = &instance->state;
    State *const before = &instance->waiting[BEFORE_EVENTS];
    *before = *state;
    if (state->mode != AT_EVENTS) return REFUSE("events happen in event mode only");
    if (!agrees(instance)) return REFUSE("%s", instance->reason);
    *some = is_at_event(instance);
    refresh(instance); /* updates see accelerations that fit the inputs of now */
    if (!pass(instance)) {
        *state = *before;
        instance->known = NOTHING;
        return REFUSE("%s", instance->reason);
    }
    refresh(instance);
    *next = next_event_after(instance, state->passed, state->sampled);
    return DONE;
}
