/* Accelerations and rates that fit the inputs of now: they jump where inputs do. */

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
