/* How the motion is described: references of orientations that follow where an angle becomes large, the loop equations
 * that count, and momenta that start anew where the impulses in them have grown. */

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

#if FORMULATION == FIRST_ORDER

/* Let what follows from positions, velocities or momenta, and the loop equations that count, follow. */
static void follow(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->active, state->active, CONSTRAINTS);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    first_order_motion(parts);
    let_history_jump(instance);
    keep(instance);
}

#endif

#if RESTARTS

/* Where impulses outweigh the momenta of the motion, go on from these alone: z' stays, and sigma is zero. */
static void start_momenta_anew(Instance *instance) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double energies[2], momenta[ROOM(COORDINATES)];
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    momenta_anew(parts, energies, momenta);
    if (energies[0] <= GROWN * energies[1]) return;
    COPY(state->momenta, momenta, COORDINATES);
    follow(instance);
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
    if (anew) follow(instance);
#else
    (void)anew;
#endif
#if RESTARTS
    start_momenta_anew(instance);
#endif
}
