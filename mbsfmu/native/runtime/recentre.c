/* References of orientations that follow where an angle becomes large. */

#if REFERENCES > 0

#define STEEP_ANGLE 1.0 /* in rad: beyond it a reference moves to the present orientation */

/* Move the references along where an angle has become large; the motion stays the same. */
static void recentre(Instance *instance) {
    State *state = &instance->state;
    Parts *parts = &instance->parts;
    int steep = 0;
    for (int k = 0; k < REFERENCES / 4; k++) {
        if (fabs(state->coordinates[steep_coordinates[k]]) > STEEP_ANGLE) steep = 1;
    }
    if (!steep) return;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->accelerations, state->accelerations, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    recentred(
        parts, state->coordinates, state->velocities, state->accelerations, state->momenta, state->references
    );
#if FORMULATION == FIRST_ORDER
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    first_order_motion(parts);
    keep(instance);
#endif
}

#else

static void recentre(Instance *instance) { (void)instance; }

#endif
