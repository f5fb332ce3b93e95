/* Accelerations and rates that fit the inputs of now, which jump where inputs do, and prescribed motion, which must not. */

/* Write the state into the arguments of the traced functions. */
static void load(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
#define LOAD(name, size) COPY(parts->name, state->name, size);
    STATE_ARRAYS(LOAD)
#undef LOAD
    COPY(parts->parameters, state->parameters, PARAMETERS);
    COPY(parts->inputs, state->effective, INPUTS);
    COPY(parts->discrete, state->discrete, DISCRETE);
}

#if !OWN_MOTION

/* Accelerations and multipliers that fit the arguments' positions, velocities, states and inputs, and x'; equations that stand out by
 * a share below `near` may be left out. */
static void find_motion(const Parts *parts, double near, double *rates) {
    double mass[ROOM(COORDINATES * COORDINATES)], by_inputs[ROOM(COORDINATES * INPUTS)], right[ROOM(SADDLE)];
    double turn[ROOM(CONSTRAINTS)];
    equilibrium(parts, mass, right, rates, by_inputs);
    quadratic(parts, turn);
    for (int i = 0; i < COORDINATES; i++) right[i] = -right[i];
    for (int i = 0; i < CONSTRAINTS; i++) right[COORDINATES + i] = -turn[i];
    step_functions.solve_saddle(parts, mass, near, right);
    COPY(parts->accelerations, right, COORDINATES);
    COPY(parts->multipliers, right + COORDINATES, CONSTRAINTS);
#if RATES_BY_ACCELERATIONS
    step_functions.state_rates(parts, rates);
#endif
}

#endif

/* What was integrated ahead does not hold any more: something has jumped. */
static void forget_ahead(State *state) { memset(state->ahead + 1, 0, sizeof state->ahead - sizeof *state->ahead); }

/* Find accelerations, multipliers and rates for the inputs from the state's time on; where `near`, of positions that are only near
 * the constraints. */
static void fit(Instance *instance, int near) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    forget_ahead(state);
    step_functions.inputs_at(instance, state->time, state->effective);
    load(instance);
#if OWN_MOTION
    if (near) step_functions.close(instance);
    step_functions.motion(instance); /* where it fails, the state is not finite */
#else
    (void)near;
    find_motion(parts, NEAR_CHANGE, parts->rates);
#endif
    step_functions.integral_rates(parts, parts->integral_rates);
    (void)step_functions.follow_loops(instance); /* where one is not solved, what depends on it is not finite */
    step_functions.restart_history(instance);
    keep(instance);
    COPY(state->integral_rates, parts->integral_rates, INTEGRALS);
    instance->known = NOTHING;
}

/* Accelerations, multipliers and rates that fit the inputs from the state's time on. */
static void make_consistent(Instance *instance) { fit(instance, 0); }

/* Where an input has jumped, let accelerations and rates jump too. */
static void refresh(Instance *instance) {
    double values[ROOM(INPUTS)];
    step_functions.inputs_at(instance, instance->state.time, values);
    for (int i = 0; i < INPUTS; i++) {
        if (values[i] != instance->state.effective[i]) {
            make_consistent(instance);
            return;
        }
    }
}

/* -- motion that is prescribed must go on from where it is ---------------------------------------------------------- */

#if DRIVEN > 0

static int jumps(Instance *instance, int row, const char *what, double jump, const char *per) {
    return fail(
        instance,
        "at t = %.9g s the %s of %s jumps by %.3g %s%s; it must go on from where it was, with the velocity and "
        "acceleration that belong to it",
        instance->state.time, what, driven_names[row], jump, driven_units[row], per
    );
}

/* Whether what is prescribed from now on is where the state is. */
static int follows_motion(Instance *instance) {
    double gaps[DRIVEN], rates[DRIVEN], drifts[DRIVEN];
    load(instance);
    step_functions.inputs_at(instance, instance->state.time, instance->parts.inputs);
    missed(&instance->parts, gaps, rates, drifts);
    for (int k = 0; k < DRIVEN; k++) {
        const double scale = driven_scales[k];
        if (!(fabs(gaps[k]) <= JUMP * scale)) return jumps(instance, k, "position", -gaps[k], "");
        if (!(fabs(rates[k]) <= JUMP_OF_RATE * (scale + fabs(drifts[k])))) {
            return jumps(instance, k, "velocity", -rates[k], "/s");
        }
    }
    return 1;
}

#else

static int follows_motion(Instance *instance) {
    (void)instance;
    return 1;
}

#endif
