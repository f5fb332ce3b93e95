/* How the motion is described: references of orientations that follow where an angle becomes large, and the loop
 * equations that count. */

#if REFERENCES > 0

#define STEEP_ANGLE 1.0 /* in rad: beyond it a reference moves to the present orientation */

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
    return 1;
}

#else

static int recentre(Instance *instance) {
    (void)instance;
    return 0;
}

#endif

/* Describe the state that a step has led to as the next one needs it. */
static void describe_anew(Instance *instance) {
    int anew = recentre(instance);
#if FORMULATION == FIRST_ORDER
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    if (choose_rows(parts, state->active, 0)) {
        state->repartitions += 1.0;
        anew = 1;
    }
    if (!anew) return;
    COPY(parts->active, state->active, CONSTRAINTS);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    first_order_motion(parts);
    keep(instance);
#else
    (void)anew;
#endif
}
