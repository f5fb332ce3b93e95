/* References of orientations, which follow where an angle becomes large. */

#if REFERENCES > 0


/* Move the references along where an angle has become large; the motion stays the same. Returns whether they move. */
static int recentre(Instance *instance) {
    State *state = &instance->state;
    Parts *parts = &instance->parts;
    int steep = 0;
    for (int k = 0; k < REFERENCES / 4; k++) {
        if (fabs(state->coordinates[steep_coordinates[k]]) > STEEP_ANGLE) steep = 1;
    }
    if (!steep) return 0;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->accelerations, state->accelerations, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    recentred(
        parts, state->coordinates, state->velocities, state->accelerations, state->momenta, state->references
    );
    forget_steps(state);
    return 1;
}

#else

static int recentre(Instance *instance) {
    (void)instance;
    return 0;
}

#endif
