/* Points of model exchange: the solver of a host integrates the continuous states, y' = f(t, y).
 *
 * In continuous time a point is a time, y and inputs. The state is brought to it when somebody asks for something
 * there, from where the last completed step has ended, so that what is found depends on no trial before. How the motion
 * is described - by which coordinates, loop equations and references - stays from event to event, and changes at an
 * event alone. */

#define IN_CONTINUOUS_TIME(state) (MODEL_EXCHANGE && (state)->mode == CONTINUOUS_TIME)
/* CasADi sets states as variables, and stays in event mode [casadi, fmu3.cpp]. */
#if MODEL_EXCHANGE
#define AT_POINT(state) ((state)->mode == CONTINUOUS_TIME || ((state)->mode == AT_EVENTS && (state)->led))
#else
#define AT_POINT(state) 0
#endif

#if MODEL_EXCHANGE

/* Remember where the state is as what the next points are reached from. */
static void keep_consistent_point(State *state) {
    ConsistentPoint *consistent = &state->consistent;
    COPY(consistent->coordinates, state->coordinates, COORDINATES);
    COPY(consistent->loop_iterates, state->loop_iterates, LOOP_ITERATES);
}

static void go_back(State *state) {
    const ConsistentPoint *consistent = &state->consistent;
    COPY(state->coordinates, consistent->coordinates, COORDINATES);
    COPY(state->loop_iterates, consistent->loop_iterates, LOOP_ITERATES);
}

/* Take the point as what the state is at. */
static void land_at_point(Instance *instance) {
    State *state = &instance->state;
    step_functions.inputs_at(instance, state->time, state->effective);
    state->away = 0;
    instance->known = NOTHING;
}

/* What the functions of a point need that no point changes. */
static void load_constants(Instance *instance) {
    COPY(instance->parts.parameters, instance->state.parameters, PARAMETERS);
    COPY(instance->parts.discrete, instance->state.discrete, DISCRETE);
}

/* Bring the state to the point; returns 0 with a reason where there is none. */
static int arrive(Instance *instance) {
    State *state = &instance->state;
    if (!state->away) return 1;
    State *const before = &instance->waiting[BEFORE_POINT];
    copy_but_iteration_matrix(before, state);
    go_back(state);
    load_constants(instance);
    if (!flow_functions.reach(instance, state->time, state->point)) {
        copy_but_iteration_matrix(state, before);
        return 0;
    }
    state->steps = before->steps;
    land_at_point(instance);
    return 1;
}

/* The point has moved. */
static void leave_point(Instance *instance) {
    instance->state.away = 1;
    instance->flow_known = 0;
    instance->known = NOTHING;
}

/* Begin continuous time, or events before it, where the state is. */
static void begin_at_state(Instance *instance) {
    State *state = &instance->state;
    flow_functions.pack(state, state->point);
    keep_consistent_point(state);
    state->away = state->led = instance->flow_known = 0;
}

/* The place of a variable among the continuous states; POINT where it is none. */
static int state_index(unsigned variable) { return state_places[variable]; }

/* Whether a variable is a continuous state that can be set now. */
static int can_lead(const State *state, unsigned variable) {
    const int mode = state->mode == AT_EVENTS || state->mode == CONTINUOUS_TIME;
    return state->exchanges && mode && state_index(variable) < POINT;
}

/* Set one continuous state. */
static void lead_state(Instance *instance, unsigned variable, double value) {
    State *state = &instance->state;
    if (!AT_POINT(state)) {
        begin_at_state(instance);
        state->led = 1;
    }
    if (state->point[state_index(variable)] == value) return;
    state->point[state_index(variable)] = value;
    leave_point(instance);
}

#else

static int can_lead(const State *state, unsigned variable) {
    (void)state;
    (void)variable;
    return 0;
}

static void lead_state(Instance *instance, unsigned variable, double value) {
    (void)instance;
    (void)variable;
    (void)value;
}

static int arrive(Instance *instance) {
    (void)instance;
    return 1;
}

static void leave_point(Instance *instance) { (void)instance; }

#endif
