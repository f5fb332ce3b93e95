/* The reduced equations for explicit solvers: y = (z_i, z_i', x, integrals). */

#define SIZE (2 * FREEDOM + STATES + INTEGRALS)

/* y' at a time inside an interval without jumps; brings all arguments of the functions to that point. */
static int rates_of(Instance *instance, double time, const double *y, double *rates) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double coordinates[ROOM(COORDINATES)], mass[ROOM(FREEDOM * FREEDOM)], load[ROOM(FREEDOM)];
    int pivots[ROOM(FREEDOM)];
    /* The estimate is the last step's end: the rates are a function of time and y alone. */
    COPY(coordinates, state->coordinates, COORDINATES);
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (!state->dependent[j]) coordinates[j] = y[k++];
    }
    COPY(parts->references, state->references, REFERENCES);
    if (!place(instance, state->dependent, coordinates)) return 0;
    COPY(parts->independent_velocities, y + FREEDOM, FREEDOM);
    COPY(parts->states, y + 2 * FREEDOM, STATES);
    COPY(parts->integrals, y + 2 * FREEDOM + STATES, INTEGRALS);
    inputs_at(instance, time, BEFORE, parts->inputs);
    reduced_dynamics(parts, mass, load, parts->rates);
    if (!factorize(FREEDOM, mass, pivots)) return fail(instance, "the mass matrix is singular");
    substitute(FREEDOM, mass, pivots, load);
    COPY(parts->independent_accelerations, load, FREEDOM);
    reduced_motion(parts);
    COPY(rates, y + FREEDOM, FREEDOM);
    COPY(rates + FREEDOM, load, FREEDOM);
    COPY(rates + 2 * FREEDOM, parts->rates, STATES);
    integral_rates(parts, rates + 2 * FREEDOM + STATES);
    if (!all_finite(rates, SIZE)) return fail(instance, "the equations are not finite at t = %.9g s", time);
    return 1;
}

static void pack(const State *state, double *y) {
    int k = 0;
    for (int j = 0; j < COORDINATES; j++) {
        if (state->dependent[j]) continue;
        y[k] = state->coordinates[j];
        y[FREEDOM + k++] = state->velocities[j];
    }
    COPY(y + 2 * FREEDOM, state->states, STATES);
    COPY(y + 2 * FREEDOM + STATES, state->integrals, INTEGRALS);
}

/* Take the end of a step as the state; choose other coordinates where the present ones get steep. */
static int commit(Instance *instance, double time, const double *y) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double rates[ROOM(SIZE)];
    int dependent[ROOM(COORDINATES)];
    if (!rates_of(instance, time, y, rates)) return 0;
    keep(instance);
    COPY(state->integrals, y + 2 * FREEDOM + STATES, INTEGRALS);
    COPY(state->integral_rates, rates + 2 * FREEDOM + STATES, INTEGRALS);
    state->steps += 1.0;
    recentre(instance);
    if (CONSTRAINTS == 0 || largest_magnitude(parts->basis, COORDINATES * FREEDOM) <= STEEP) return 1;
    if (!partition(instance, dependent)) return 0;
    if (memcmp(dependent, state->dependent, sizeof(int) * COORDINATES) != 0) {
        state->repartitions += 1.0;
        memcpy(state->dependent, dependent, sizeof(int) * COORDINATES);
    }
    return 1;
}
