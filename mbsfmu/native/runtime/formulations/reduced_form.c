/* The reduced equations for explicit and linearly implicit solvers: y = (z_i, z_i', x, integrals). */

#include "reduced_sizes.h"

#if SOLVER == EXCHANGED

/* Close the loops at a share of the way from one point to y, where the iteration matrix at the last one leads; returns 0 where they
 * cannot be closed there, or are so in another way. */
static int follow_null_space(Instance *instance, const double *last, const double *begin, const double *y, double share) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double guess[ROOM(COORDINATES)], way = 0.0, off = 0.0;
    COPY(guess, last, COORDINATES);
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (state->dependent[j]) continue;
        const double target = share < 1.0 ? begin[j] + share * (y[k] - begin[j]) : y[k], moved = target - last[j];
        for (int i = 0; i < COORDINATES; i++) {
            if (state->dependent[i]) guess[i] += parts->basis[i + COORDINATES * k] * moved;
        }
        guess[j] = target;
        k++;
    }
    for (int j = 0; j < COORDINATES; j++) way = larger(way, fabs(guess[j] - last[j]));
    if (!place(instance, state->dependent, guess)) return 0;
    for (int j = 0; j < COORDINATES; j++) off = larger(off, fabs(parts->coordinates[j] - guess[j]));
    return off <= LEAP * way + ROUND_OFF || fail(instance, "the loops would be closed in another way than before");
}

/* Close the loops at y as they are closed at the state, which may be far away: along the straight line between the
 * independent coordinates, in parts that are so short that each follows from the one before. */
static int close_at(Instance *instance, const double *y) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double begin[ROOM(COORDINATES)], last[ROOM(COORDINATES)], basis[ROOM(COORDINATES * FREEDOM)];
    double done = 0.0, part = 1.0;
    if (!place(instance, state->dependent, state->coordinates)) return 0;
    COPY(begin, parts->coordinates, COORDINATES);
    COPY(last, begin, COORDINATES);
    while (done < 1.0) {
        const double share = smaller(1.0, done + part);
        COPY(basis, parts->basis, COORDINATES * FREEDOM);
        if (follow_null_space(instance, last, begin, y, share)) {
            COPY(last, parts->coordinates, COORDINATES);
            done = share;
            part *= 2.0;
        } else if (part > SMALLEST_PART) {
            COPY(parts->basis, basis, COORDINATES * FREEDOM);
            part *= 0.5;
        } else {
            return 0;
        }
    }
    return 1;
}

#else

#if LED && SOLVER == ROSENBROCK

/* Keep the iteration matrix of the loops at the state, where they have been closed. */
static inline void lead_from_state(Instance *instance) {
    COPY(instance->leading, instance->parts.basis, LED);
    instance->leads = 1;
}

/* Move an estimate of the dependent coordinates along it. */
static inline void lead(const Instance *instance, const double *y, double *coordinates) {
    const State *state = &instance->state;
    const double *column = instance->leading;
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (state->dependent[j]) continue;
        const double moved = y[k++] - state->coordinates[j];
        for (int i = 0; i < COORDINATES; i++) {
            if (state->dependent[i]) coordinates[i] += column[i] * moved;
        }
        column += COORDINATES;
    }
}

#endif

/* Close the loops at y. The estimate is the last step's end, or what the iteration matrix there leads to where that is known, and
 * not the last evaluation: the rates are a function of time and y alone. */
static int close_at(Instance *instance, const double *y) {
    const State *state = &instance->state;
    double coordinates[ROOM(COORDINATES)];
    COPY(coordinates, state->coordinates, COORDINATES);
#if LED && SOLVER == ROSENBROCK
    if (instance->leads) lead(instance, y, coordinates);
#endif
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (!state->dependent[j]) coordinates[j] = y[k++];
    }
    return place(instance, state->dependent, coordinates);
}

#endif

/* y' at a time inside an interval without jumps; brings the arguments of the functions to that point: of the motion, where
 * no rate depends on all of it, the independent part alone. */
static int rates_of(Instance *instance, double time, const double *y, double *rates) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double mass[ROOM(FREEDOM * FREEDOM)], load[ROOM(FREEDOM)];
    int pivots[ROOM(FREEDOM)];
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->loop_iterates, state->loop_iterates, LOOP_ITERATES);
    inputs_at(instance, time, parts->inputs); /* loops may move with them */
    if (!close_at(instance, y)) return 0;
    COPY(parts->independent_velocities, y + FREEDOM, FREEDOM);
    COPY(parts->states, y + 2 * FREEDOM, STATES);
    COPY(parts->integrals, y + 2 * FREEDOM + STATES, INTEGRALS);
#if RATES_AT_ONCE
    reduced_dynamics(parts, mass, load, parts->rates, rates + 2 * FREEDOM + STATES);
#else
    reduced_dynamics(parts, mass, load, parts->rates);
#endif
    if (!factorize(FREEDOM, mass, pivots)) return fail(instance, "the mass matrix is singular");
    substitute(FREEDOM, mass, pivots, load);
    COPY(parts->independent_accelerations, load, FREEDOM);
#if !RATES_AT_ONCE
    reduced_motion(parts);
#if RATES_BY_ACCELERATIONS
    state_rates(parts, parts->rates);
#endif
    integral_rates(parts, rates + 2 * FREEDOM + STATES);
#endif
    COPY(rates, y + FREEDOM, FREEDOM);
    COPY(rates + FREEDOM, load, FREEDOM);
    COPY(rates + 2 * FREEDOM, parts->rates, STATES);
    if (!all_finite(rates, SIZE)) return loops_hold(instance) && fail(instance, "the equations are not finite at t = %.9g s", time);
    return 1;
}

/* The same of all of the motion. */
static int motion_of(Instance *instance, double time, const double *y, double *rates) {
    if (!rates_of(instance, time, y, rates)) return 0;
#if RATES_AT_ONCE
    reduced_motion(&instance->parts);
#endif
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

/* y' of the state. */
static inline void pack_rates(const State *state, double *rates) {
    int k = 0;
    for (int j = 0; j < COORDINATES; j++) {
        if (state->dependent[j]) continue;
        rates[k] = state->velocities[j];
        rates[FREEDOM + k++] = state->accelerations[j];
    }
    COPY(rates + 2 * FREEDOM, state->rates, STATES);
    COPY(rates + 2 * FREEDOM + STATES, state->integral_rates, INTEGRALS);
}

#if SOLVER != EXCHANGED

/* Whether the loops have been closed in another way than in the state, a step before. Newton's iteration may find another
 * assembly from far away, which an error estimate does not see where all stages do. Velocities and accelerations at
 * both ends tell how far the dependent coordinates have moved, to order four; another assembly is off by more than a
 * part. */
static int leaps(const Instance *instance, double step) {
    const State *before = &instance->state;
    const Parts *after = &instance->parts;
    double speed = 0.0, push = 0.0, off = 0.0;
    for (int j = 0; j < COORDINATES; j++) {
        if (!before->dependent[j]) continue;
        const double moved = 0.5 * step * (before->velocities[j] + after->velocities[j])
            + step * step / 12.0 * (before->accelerations[j] - after->accelerations[j]);
        speed = larger(speed, larger(fabs(before->velocities[j]), fabs(after->velocities[j])));
        push = larger(push, larger(fabs(before->accelerations[j]), fabs(after->accelerations[j])));
        off = larger(off, fabs(after->coordinates[j] - before->coordinates[j] - moved));
    }
    return off > LEAP * (step * speed + 0.5 * step * step * push) + ROUND_OFF;
}

#endif

/* Take y, where the arguments are, as the state; where that cannot be, the state stays as it is. */
static int take(Instance *instance, const double *y, const double *rates) {
    State *state = &instance->state;
    if (!follow_loops(instance)) return 0;
    keep(instance);
    COPY(state->integrals, y + 2 * FREEDOM + STATES, INTEGRALS);
    COPY(state->integral_rates, rates + 2 * FREEDOM + STATES, INTEGRALS);
    state->steps += 1.0;
    return 1;
}

#if SOLVER != EXCHANGED

/* Take the end of a step as the state; where that cannot be, the state stays as it is. */
static int commit(Instance *instance, double time, double step, const double *y) {
    double rates[ROOM(SIZE)];
    if (!motion_of(instance, time, y, rates)) return 0;
    if (leaps(instance, step)) return fail(instance, "the loops would be closed in another way than before");
    return take(instance, y, rates);
}

#endif

/* Describe the motion anew where it is due: move references along, and choose other coordinates where these get steep. */
static int describe(Instance *instance) {
    State *state = &instance->state;
    int dependent[ROOM(COORDINATES)];
    change_chart(instance);
    if (!needs_other_partition(instance, state->dependent)) return 1;
    if (!partition(instance, dependent)) return 0;
    if (memcmp(dependent, state->dependent, sizeof(int) * COORDINATES) != 0) {
        state->repartitions += 1.0;
        memcpy(state->dependent, dependent, sizeof(int) * COORDINATES);
    }
    return 1;
}

#if SOLVER == ROSENBROCK || SOLVER == EXCHANGED

/* Add what changes of the independent accelerations, column by column, add to those of the states' and the integrals'
 * rates. Columns are so many elements apart. */
static void add_through_accelerations(const Parts *parts, int columns, int apart, const double *pushed, double *rates) {
#if RATES_BY_ACCELERATIONS || DRIVEN > 0
    double matrix[ROOM((STATES + INTEGRALS) * FREEDOM)];
    reduced_by_accelerations(parts, matrix);
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < STATES + INTEGRALS; i++) {
            for (int k = 0; k < FREEDOM; k++) {
                rates[i + apart * j] += matrix[i + (STATES + INTEGRALS) * k] * pushed[k + apart * j];
            }
        }
    }
#else
    (void)parts;
    (void)columns;
    (void)apart;
    (void)pushed;
    (void)rates;
#endif
}

/* Find the derivative of y' by y, independent coordinates apart, at the state. */
static int find_slope(Instance *instance, double time, double *slope) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    enum { ROWS = FREEDOM + STATES + INTEGRALS, COLUMNS = 2 * FREEDOM + STATES };
    double mass[ROOM(FREEDOM * FREEDOM)], load[ROOM(FREEDOM * COLUMNS)], rates[ROOM((ROWS - FREEDOM) * COLUMNS)];
    int pivots[ROOM(FREEDOM)];
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->loop_iterates, state->loop_iterates, LOOP_ITERATES);
    if (!place(instance, state->dependent, state->coordinates)) return 0;
#if LED && SOLVER == ROSENBROCK
    lead_from_state(instance);
#endif
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->accelerations, state->accelerations, COORDINATES);
    COPY(parts->multipliers, state->multipliers, CONSTRAINTS);
    COPY(parts->states, state->states, STATES);
    inputs_at(instance, time, parts->inputs);
    reduced_slope(parts, mass, load, rates);
    if (!factorize(FREEDOM, mass, pivots)) return fail(instance, "the mass matrix is singular");
    for (int j = 0; j < COLUMNS; j++) {
        substitute(FREEDOM, mass, pivots, load + FREEDOM * j);
        COPY(slope + ROWS * j, load + FREEDOM * j, FREEDOM);
        COPY(slope + ROWS * j + FREEDOM, rates + (ROWS - FREEDOM) * j, ROWS - FREEDOM);
    }
    add_through_accelerations(parts, COLUMNS, ROWS, slope, slope + FREEDOM);
    return 1;
}

/* Find the change of y' with the inputs in time, where the slope was found. */
static int find_drift(Instance *instance, double *drift) {
    double mass[ROOM(FREEDOM * FREEDOM)];
    int pivots[ROOM(FREEDOM)];
    reduced_mass(&instance->parts, mass);
    if (!factorize(FREEDOM, mass, pivots)) return fail(instance, "the mass matrix is singular");
    reduced_drift(&instance->parts, drift + FREEDOM);
    substitute(FREEDOM, mass, pivots, drift + FREEDOM);
    add_through_accelerations(&instance->parts, 1, 0, drift + FREEDOM, drift + 2 * FREEDOM);
    return 1;
}

#endif

#if SOLVER == EXCHANGED

/* Take a point as the state; where that cannot be, the state stays as it is. */
static int reach(Instance *instance, double time, const double *y) {
    double rates[ROOM(SIZE)];
    return motion_of(instance, time, y, rates) && take(instance, y, rates);
}

#if KEEPS_JACOBIAN

/* Bring R_z and G to the point of a Jacobian, where the state is loaded. */
static void load_jacobian(const Instance *instance, const PointJacobian *jacobian) {
    const Parts *parts = &instance->parts;
    COPY(parts->basis, jacobian->basis, COORDINATES * FREEDOM);
    COPY(parts->lift, jacobian->lift, COORDINATES * CONSTRAINTS);
}

static int find_jacobian(Instance *instance, PointJacobian *jacobian) {
    if (!find_slope(instance, instance->state.time, jacobian->by_states)) return 0;
    insert_chained(jacobian->by_states, SIZE - INTEGRALS, CHAINED);
    COPY(jacobian->basis, instance->parts.basis, COORDINATES * FREEDOM);
    COPY(jacobian->lift, instance->parts.lift, COORDINATES * CONSTRAINTS);
    return 1;
}

static int find_input_jacobian(Instance *instance, PointJacobian *jacobian) {
    load_jacobian(instance, jacobian);
    for (int j = 0; j < INPUTS; j++) {
        double *const column = jacobian->by_inputs + SIZE * j;
        for (int i = 0; i < INPUTS; i++) instance->parts.input_rates[i] = i == j ? 1.0 : 0.0;
        for (int i = 0; i < SIZE; i++) column[i] = 0.0;
        if (!find_drift(instance, column)) return 0;
    }
    return 1;
}

/* What changes with a direction of y and inputs at the point of the Jacobian. */
static int find_change(Instance *instance, const double *d_y, const double *d_inputs, Change *change) {
    const Parts *parts = &instance->parts;
    load_jacobian(instance, &instance->jacobian);
    COPY(parts->d_coordinates, d_y, FREEDOM);
    COPY(parts->d_velocities, d_y + FREEDOM, FREEDOM);
    COPY(parts->d_accelerations, change->rates + FREEDOM, FREEDOM);
    COPY(parts->d_states, d_y + 2 * FREEDOM, STATES);
    COPY(parts->d_integrals, d_y + 2 * FREEDOM + STATES, INTEGRALS);
    COPY(parts->d_inputs, d_inputs, INPUTS);
    reduced_change(parts, change->outputs, change->coordinates, change->velocities, change->accelerations);
    return 1;
}

#endif

#endif
