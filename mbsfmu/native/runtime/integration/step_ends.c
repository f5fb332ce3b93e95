/* What becomes of a state that steps have reached: loops closed and no joint turned over, references of orientations moved
 * along, and the guesses of algebraic loops. */

/* Whether no joint is turned by half a turn, which the constraints let it. */
static int joints_aligned(Instance *instance, double time) {
#if ALIGNED > 0
    double values[ALIGNED];
    misalignment(&instance->parts, values);
    for (int i = 0; i < ALIGNED; i++) {
        if (values[i] < TURNED) continue;
        return fail(
            instance, "at t = %.9g s joint %s is turned by half a turn against its own orientation; " REMEDY, time,
            aligned_names[i]
        );
    }
#else
    (void)instance;
    (void)time;
#endif
    return 1;
}

/* Whether the loops are closed as far as the formulation promises, by no joint that is turned over. */
static int loops_closed(Instance *instance, double time) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    if (!joints_aligned(instance, time)) return 0;
#if CONSTRAINTS > 0 && !CLOSES_LOOPS
    double violation[CONSTRAINTS];
    int worst = 0;
    gap(parts, violation);
    for (int i = 1; i < CONSTRAINTS; i++) {
        if (fabs(violation[i]) * loop_scales[worst] > fabs(violation[worst]) * loop_scales[i]) worst = i;
    }
    if (fabs(violation[worst]) <= OPENING * loop_scales[worst]) return 1;
    return fail(
        instance, "at t = %.9g s the loop has come open by %.3g %s at joint %s; " REMEDY, time,
        fabs(violation[worst]), loop_units[worst], loop_names[worst]
    );
#else
    return 1; /* they are closed before a step is done */
#endif
}

/* -- references of orientations, which follow where an angle becomes large ------------------------------------------ */

#if REFERENCES > 0

/* Whether a reference has to change: near gimbal lock, and in equal steps of second order where an axis of fast rotation is not the
 * third. */
static int needs_references(const State *state) {
    for (size_t k = 0; k < sizeof turning_angles / sizeof *turning_angles; k++) {
        const int *const angles = turning_angles[k];
        const double tilt = larger(fabs(state->velocities[angles[0]]), fabs(state->velocities[angles[1]]));
        const double turned = larger(fabs(state->coordinates[angles[0]]), fabs(state->coordinates[angles[1]]));
        const double in_step = state->step_size * tilt, lost = in_step * in_step * (state->initialized ? turned : 1.0);
        if (fabs(state->coordinates[angles[1]]) > NEAR_GIMBAL_LOCK) return 1;
        if (SOLVER == IMPLICIT && lost > LOST_BY_TURNING && tilt > fabs(state->velocities[angles[2]])) return 1;
    }
    return 0;
}

/* Move the references along where they have to change; the motion stays the same. Returns whether they move. */
static int change_reference_quaternions(Instance *instance) {
    State *state = &instance->state;
    Parts *parts = &instance->parts;
    if (!needs_references(state)) return 0;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->accelerations, state->accelerations, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    with_present_references(
        parts, state->coordinates, state->velocities, state->accelerations, state->momenta, state->references
    );
    forget_steps(state);
    return 1;
}

#else

static int change_reference_quaternions(Instance *instance) {
    (void)instance;
    return 0;
}

#endif

/* -- algebraic loops that are not linear: what they are solved for is where the next solution is looked for --------- */

/* Solve them where the arguments are, and begin there the next time; returns 0 with a reason where one is not solved. */
static int follow_loops(Instance *instance) {
#if LOOP_ITERATES > 0
    const Parts *parts = &instance->parts;
    double off[ALGEBRAIC_LOOPS], found[LOOP_ITERATES];
    loop_solutions(parts, off, found);
    for (int i = 0; i < ALGEBRAIC_LOOPS; i++) {
        if (off[i] == 0.0) continue;
        const double guess = parts->loop_iterates[first_loop_iterates[i]];
        return fail(instance, "%s = %.6g on: it stays off by %.3g", unsolved_loops[i], guess, off[i]);
    }
    COPY(parts->loop_iterates, found, LOOP_ITERATES);
    COPY(instance->state.loop_iterates, found, LOOP_ITERATES);
#else
    (void)instance;
#endif
    return 1;
}

#if OWN_MOTION
static void motion(Instance *instance);
#endif

/* Whether it is not for a loop that is not solved that numbers are not finite; else there is a reason. */
static int loops_hold(Instance *instance) {
#if OWN_MOTION
    if (LOOP_ITERATES > 0) motion(instance); /* velocities may follow from momenta */
#endif
    return follow_loops(instance);
}
