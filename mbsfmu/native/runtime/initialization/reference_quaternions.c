/* References of orientations, which follow where an angle becomes large. */

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
