/* Model exchange: how an instance goes from events to continuous time and back, and what the solver of a host asks. */

#define FOR_EXCHANGE \
    State *const state = &instance->state; \
    if (!state->exchanges) return REFUSE("this instance is for co-simulation: it makes its steps itself")
#define AT_POINTS(what) \
    FOR_EXCHANGE; \
    if (state->mode != CONTINUOUS_TIME) return REFUSE("%s in continuous-time mode only", what)
#define ALL_STATES(count) \
    if ((count) != POINT) return REFUSE("there are %d continuous states, not %u", (int)POINT, (unsigned)(count))
#define ALL_INDICATORS(count) \
    if ((count) != INDICATORS) return REFUSE("there are %d event indicators, not %u", (int)INDICATORS, (unsigned)(count))

static Instance *create_for_exchange(Logger logger, void *environment) {
    Instance *instance = create(logger, environment, NULL);
    if (!instance) return NULL;
    instance->exchanges = 1;
#if CLOCKS
    follow_clocks(instance);
#endif
    reset(instance);
    return instance;
}

/* -- points ------------------------------------------------------------------------------------------------------- */

static Status set_time(Instance *instance, double time) {
    FOR_EXCHANGE;
    if (!(fabs(time) <= MOST_REACHED)) return REFUSE("the time is %g s; it must be a finite number of at most %g", time, MOST_REACHED);
    if (state->mode == AT_EVENTS && fabs(time - state->time) <= same_time(state, DBL_MAX, time, state->time)) return DONE;
    if (state->mode != CONTINUOUS_TIME) return REFUSE("the time is set in continuous-time mode only");
    if (time + 2.0 * same_time(state, DBL_MAX, time, state->passed) < state->passed) {
        return REFUSE("t = %.12g s is before the last event", time);
    }
    if (!can_sample(instance, time)) return REFUSE("%s", instance->reason);
    if (time == state->time) return DONE;
    state->time = state->slope_time = time;
    leave_point(instance);
    return DONE;
}

static Status set_states(Instance *instance, const double *values, size_t count) {
    AT_POINTS("continuous states are set");
    ALL_STATES(count);
    for (int i = 0; i < POINT; i++) {
        if (!(fabs(values[i]) <= MOST_REACHED)) return REFUSE("continuous states must be finite numbers of at most %g", MOST_REACHED);
    }
    if (memcmp(state->point, values, sizeof(double) * POINT) == 0) return DONE;
    COPY(state->point, values, POINT);
    leave_point(instance);
    return DONE;
}

static Status get_states(Instance *instance, double *values, size_t count) {
    FOR_EXCHANGE;
    ALL_STATES(count);
    if (AT_POINT(state)) {
        COPY(values, state->point, POINT);
        return DONE;
    }
    if (!initialized(instance)) return REFUSE("continuous states cannot be computed: %s", instance->reason);
    flow_functions.pack(state, values);
    return DONE;
}

/* Find the rates at the point; returns 0 with a reason. The state stays where it is. */
static int find_flow(Instance *instance) {
    State *state = &instance->state;
    double coordinates[ROOM(COORDINATES)], loop_iterates[ROOM(LOOP_ITERATES)];
    if (instance->flow_known) return 1;
    COPY(coordinates, state->coordinates, COORDINATES);
    COPY(loop_iterates, state->loop_iterates, LOOP_ITERATES);
    COPY(state->coordinates, state->consistent.coordinates, COORDINATES);
    COPY(state->loop_iterates, state->consistent.loop_iterates, LOOP_ITERATES);
    load_constants(instance);
    instance->flow_known = flow_functions.rates_of(instance, state->time, state->point, instance->flow);
    if (instance->flow_known) state->evaluations += 1.0;
    COPY(state->coordinates, coordinates, COORDINATES);
    COPY(state->loop_iterates, loop_iterates, LOOP_ITERATES);
    return instance->flow_known;
}

static Status get_flow(Instance *instance, double *values, size_t count) {
    FOR_EXCHANGE;
    ALL_STATES(count);
    if (state->mode != CONTINUOUS_TIME) {
        if (!up_to_date(instance)) return REFUSE("derivatives cannot be computed: %s", instance->reason);
        flow_functions.pack_rates(state, values);
        return DONE;
    }
    if (!find_flow(instance)) {
        report(instance, DISCARDED, "%s", instance->reason); /* a solver may try a shorter step */
        return DISCARDED;
    }
    COPY(values, instance->flow, POINT);
    return DONE;
}

static Status get_nominals(Instance *instance, double *values, size_t count) {
    FOR_EXCHANGE;
    ALL_STATES(count);
    if (!initialized(instance)) return REFUSE("magnitudes cannot be given: %s", instance->reason);
#if DEPENDENT > 0
    int k = 0;
    for (int j = 0; j < COORDINATES; j++) {
        if (state->dependent[j]) continue;
        values[k] = state_nominals[j];
        values[FREEDOM + k++] = state_nominals[COORDINATES + j];
    }
    COPY(values + 2 * FREEDOM, state_nominals + 2 * COORDINATES, STATES + INTEGRALS);
#else
    COPY(values, state_nominals, POINT);
#endif
    return DONE;
}

/* Let indicators count as above or below zero by where they are now; zero is not above [FMI 2.0, 3.1]. */
static void settle_indicators(Instance *instance) {
#if INDICATORS > 0
    double values[INDICATORS];
    find_indicators(instance, values);
    for (int k = 0; k < INDICATORS; k++) instance->state.below[k] = !(values[k] > 0.0);
#else
    (void)instance;
#endif
}

static Status get_indicators(Instance *instance, double *values, size_t count) {
    FOR_EXCHANGE;
    ALL_INDICATORS(count);
#if INDICATORS > 0
    if (!is_located(instance)) {
        /* a solver may try a shorter step */
        report(instance, state->mode == CONTINUOUS_TIME ? DISCARDED : REFUSED, "event indicators cannot be computed: %s", instance->reason);
        return state->mode == CONTINUOUS_TIME ? DISCARDED : REFUSED;
    }
    find_indicators(instance, values);
#else
    (void)state;
    (void)values;
#endif
    return DONE;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

/* By how much the solver's states are off what the formulation makes of them, as shares of their magnitudes or of 1. */
static double astray(const State *state) {
    double y[ROOM(POINT)], most = 0.0;
    flow_functions.pack(state, y);
    for (int i = 0; i < POINT; i++) {
        most = larger(most, fabs(y[i] - state->point[i]) / larger(1.0, fabs(state->point[i])));
    }
    return most;
}

/* Describe the motion anew where it is due; the parts hold the state. Tells whether another description has been found. */
static int describe_motion(Instance *instance, int *others) {
    State *state = &instance->state;
    double references[ROOM(REFERENCES)], active[ROOM(CONSTRAINTS)];
    int dependent[ROOM(COORDINATES)];
    COPY(references, state->references, REFERENCES);
    COPY(active, state->active, CONSTRAINTS);
    memcpy(dependent, state->dependent, sizeof(int) * COORDINATES);
    if (!flow_functions.describe(instance)) return 0;
    *others = memcmp(references, state->references, sizeof(double) * REFERENCES) != 0
        || memcmp(active, state->active, sizeof(double) * CONSTRAINTS) != 0
        || memcmp(dependent, state->dependent, sizeof(int) * COORDINATES) != 0;
    return 1;
}

/* Whether the motion is due to be described anew, or the states to be moved where the formulation has them: both wait for
 * an event. Returns 0 with a reason where there is no description. */
static int needs_event(Instance *instance, int *needed) {
    State *const before = &instance->waiting[BEFORE_DESCRIPTION];
    copy_but_iteration_matrix(before, &instance->state);
    const int made = describe_motion(instance, needed);
    *needed |= astray(&instance->state) > ASTRAY;
    copy_but_iteration_matrix(&instance->state, before);
    return made;
}

/* Take the point as the end of a step; returns 0 with a reason. */
static int take_step(Instance *instance, int *needs) {
    State *state = &instance->state;
    go_back(state);
    load_constants(instance);
    if (!flow_functions.reach(instance, state->time, state->point)) return 0;
    if (!flow_functions.loops_closed(instance, state->time)) return 0;
    /* The parts are where the state is, as those that look for another description need it. */
    if (!needs_event(instance, needs)) return 0;
    land_at_point(instance);
    return follows_motion(instance);
}

static Status complete_step(Instance *instance, int *events) {
    AT_POINTS("steps are completed");
    State *const before = &instance->waiting[BEFORE_COMPLETION];
    int needed = 0;
    if (!ticks_made(instance, state->time)) return REFUSE("%s", instance->reason);
    copy_but_iteration_matrix(before, state);
    instance->flow_known = 0;
    if (!take_step(instance, &needed)) {
        copy_but_iteration_matrix(state, before);
        instance->known = NOTHING;
        return REFUSE("the step to t = %.9g s cannot be taken: %s", before->time, instance->reason);
    }
    keep_consistent_point(state);
    follow_rank(instance);
    follow_energy_if_due(instance);
    follow_conditions(instance);
    report_drifts(instance);
    report_conditions(instance);
    state->due = state->time + same_time(state, DBL_MAX, state->time, state->time);
    *events = needed || is_at_event(instance);
    return DONE;
}

static Status begin_events(Instance *instance) {
    FOR_EXCHANGE;
    if (state->mode != CONTINUOUS_TIME) return REFUSE("event mode is entered from continuous-time mode only");
    if (!arrive(instance)) return REFUSE("event mode cannot be entered: %s", instance->reason);
    keep_consistent_point(state);
    state->due = state->time + same_time(state, DBL_MAX, state->time, state->time);
    state->mode = AT_EVENTS;
    return DONE;
}

/* Bring the state to where continuous states were set one by one in event mode. */
static int arrive_if_led(Instance *instance) {
    State *state = &instance->state;
    if (state->mode != AT_EVENTS || !state->led) return 1;
    if (!arrive(instance)) return 0;
    state->led = 0;
    return 1;
}

static Status update_states(Instance *instance, Updated *updated) {
    FOR_EXCHANGE;
    State *const before = &instance->waiting[BEFORE_UPDATE];
    double y[ROOM(POINT)];
    int others = 0;
    *before = *state;
    Status status = REFUSED;
    if (!arrive_if_led(instance)) {
        report(instance, REFUSED, "%s", instance->reason);
    } else {
        status = pass_events(instance, &updated->some, &updated->next);
    }
    if (status != DONE) {
        *state = *before;
        instance->known = NOTHING;
        return status;
    }
    flow_functions.pack(state, y);
    load_constants(instance);
    if (!flow_functions.reach(instance, state->time, y) || !describe_motion(instance, &others)) {
        *state = *before;
        instance->known = NOTHING;
        return REFUSE("%s", instance->reason);
    }
    state->steps = before->steps;
    land_at_point(instance);
    settle_indicators(instance);
    updated->nominals_changed = others;
    begin_at_state(instance);
    return DONE;
}

static Status begin_continuous_time(Instance *instance) {
    FOR_EXCHANGE;
    if (state->mode != AT_EVENTS) return REFUSE("continuous-time mode is entered from event mode only");
    if (is_at_event(instance)) return REFUSE("events wait for new discrete states; continuous time is entered behind them");
    State *const before = &instance->waiting[BEFORE_UPDATE];
    *before = *state;
    if (!agrees(instance) || !arrive_if_led(instance) || !follows_motion(instance)) {
        *state = *before;
        instance->known = NOTHING;
        return REFUSE("%s", instance->reason);
    }
    refresh(instance);
    if (!state->energies_followed) follow_energy(instance);
    begin_at_state(instance);
    state->mode = CONTINUOUS_TIME;
    return DONE;
}

const ExchangeFunctions exchange_functions = {
    .states = POINT,
    .indicators = INDICATORS,
    .create = create_for_exchange,
    .update = update_states,
    .enter_continuous_time = begin_continuous_time,
    .enter_events = begin_events,
    .set_time = set_time,
    .set_states = set_states,
    .complete_step = complete_step,
    .get_states = get_states,
    .get_rates = get_flow,
    .get_nominals = get_nominals,
    .get_indicators = get_indicators,
};
