/* References of orientations, which follow where an angle becomes large. */

#if REFERENCES > 0


/* Move the references along where an angle has become large; the motion stays the same. Returns whether they move. */
static int change_reference_quaternions(Instance *instance) {
    State *state = &instance->state;
    Parts *parts = &instance->parts;
    int gimbal_angles = 0;
    for (int k = 0; k < REFERENCES / 4; k++) {
        if (fabs(state->coordinates[gimbal_coordinates[k]]) > NEAR_GIMBAL_LOCK) gimbal_angles = 1;
    }
    if (!gimbal_angles) return 0;
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
