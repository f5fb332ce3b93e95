/* Double-step: equations of motion in independent coordinates, from which loop equations give the others. */

/* -- the matrices that reduce the equations to independent coordinates ---------------------------------------------- */

/* The factors of the dependent columns of Phi_z: a square matrix, or where loop equations are redundant one with more
 * rows than columns, whose solutions are those of least squares. */
typedef struct {
    double matrix[ROOM(CONSTRAINTS * RANK)], scales[ROOM(RANK)];
    int order[ROOM(QR_ORDERS(CONSTRAINTS, RANK))];
} DependentFactors;

static int factorize_dependent(DependentFactors *factors) {
    if (!REDUNDANT) return factorize(RANK, factors->matrix, factors->order);
    return orthogonalize(CONSTRAINTS, RANK, factors->matrix, factors->scales, factors->order, NEXT_TO_ZERO) == RANK;
}

/* Solve for one right side of CONSTRAINTS elements, which is overwritten. */
static void solve_dependent(const DependentFactors *factors, double *right, double *solution) {
    if (!REDUNDANT) {
        substitute(RANK, factors->matrix, factors->order, right);
        COPY(solution, right, RANK);
    } else {
        solve_tall(CONSTRAINTS, RANK, factors->matrix, factors->scales, factors->order, right, solution);
    }
}

/* Write R_z and G [Jaiswal2021, eqs. 14 and 15]: of the inverse both are made, as in Python. */
static void reduce(const Parts *parts, const int *dependent, const int *chosen, const double *jacobian,
    const DependentFactors *factors) {
    double column[ROOM(CONSTRAINTS)], inverse[ROOM(RANK * CONSTRAINTS)], *basis = parts->basis;
    for (int i = 0; i < COORDINATES * CONSTRAINTS; i++) parts->lift[i] = 0.0;
    for (int i = 0; i < COORDINATES * FREEDOM; i++) basis[i] = 0.0;
    for (int k = 0; k < CONSTRAINTS; k++) {
        double *const solution = inverse + RANK * k;
        for (int i = 0; i < CONSTRAINTS; i++) column[i] = i == k ? 1.0 : 0.0;
        solve_dependent(factors, column, solution);
        for (int i = 0; i < RANK; i++) parts->lift[chosen[i] + COORDINATES * k] = solution[i];
    }
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) continue;
        for (int i = 0; i < RANK; i++) {
            double sum = 0.0;
            for (int k = 0; k < CONSTRAINTS; k++) sum += inverse[i + RANK * k] * jacobian[k + CONSTRAINTS * j];
            basis[chosen[i]] = -sum;
        }
        basis[j] = 1.0;
        basis += COORDINATES;
    }
}

/* -- dependent coordinates from independent ones: closing the loops ------------------------------------------------- */

/* Close the loops, the independent coordinates being kept; writes z, R_z and G. Where the estimate is `near`, one increment
 * does, with R_z and G of the estimate. */
static int place_from(Instance *instance, const int *dependent, const double *coordinates, int near) {
    const Parts *parts = &instance->parts;
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)], step[ROOM(RANK)];
    DependentFactors factors;
    double last = HUGE_VAL;
    int chosen[ROOM(RANK)], count = 0;
    memcpy(parts->coordinates, coordinates, sizeof(double) * COORDINATES);
    if (RANK == 0) return 1;
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) chosen[count++] = j;
    }
    for (int iteration = 0; iteration < CLOSING_ITERATIONS; iteration++) {
        closure(parts, violation, jacobian);
        const double size = magnitude(violation, CONSTRAINTS);
        for (int k = 0; k < RANK; k++) {
            memcpy(
                factors.matrix + CONSTRAINTS * k, jacobian + CONSTRAINTS * chosen[k], sizeof(double) * CONSTRAINTS
            );
        }
        if (!all_finite(&size, 1) || !factorize_dependent(&factors)) break;
        const int closed = size <= CLOSED || (size >= CLOSING_STAGNATION * last && size <= ACCEPTED);
        if (closed || near) reduce(parts, dependent, chosen, jacobian, &factors);
        if (closed) return 1;
        last = size;
        solve_dependent(&factors, violation, step);
        for (int k = 0; k < RANK; k++) parts->coordinates[chosen[k]] -= step[k];
        if (near) return 1;
    }
    double largest = 0.0;
    for (int j = 0; j < COORDINATES; j++) largest = larger(largest, fabs(coordinates[j]));
    if (last > CLOSING_LOST * DBL_EPSILON * largest) {
        return fail(instance, "the loops cannot be closed: %.3g m or rad stays open", last);
    }
    return fail(
        instance, "the loops cannot be closed: %.3g m or rad stays open, for coordinates of %.3g have no more digits; start "
        "within a few turns", last, largest
    );
}

static int place(Instance *instance, const int *dependent, const double *coordinates) {
    return place_from(instance, dependent, coordinates, 0);
}

/* Choose by the lengths of columns, which are the same in every frame; marks dependent coordinates. Returns 0 where rank
 * is missing. */
static int choose(int rows, int columns, const double *jacobian, int rank, int *dependent) {
    double factors[ROOM(MOST_CONSTRAINTS * MOST_COORDINATES)];
    memcpy(factors, jacobian, sizeof(double) * (size_t)(rows * columns));
    return take_pivots(rows, columns, factors, rank, RANK_TOLERANCE, dependent);
}

static int partition(Instance *instance, int *dependent) {
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)];
    for (int j = 0; j < COORDINATES; j++) dependent[j] = 0;
    if (RANK == 0) return 1;
    closure(&instance->parts, violation, jacobian);
    for (int k = 0; k < CONSTRAINTS * COORDINATES; k++) jacobian[k] /= element_scales[k];
    if (choose(CONSTRAINTS, COORDINATES, jacobian, RANK, dependent)) return 1;
    return fail(
        instance,
        "the configuration is singular: the loop equations lose rank there, and double-step cannot part dependent "
        "from independent coordinates; take dca, hdca or dca-alm"
    );
}

/* Whether some coordinate moves much faster than an independent one, by the measure of the loops' lever arms. */
static int needs_other_partition(const Instance *instance, const int *dependent) {
    const double *column = instance->parts.basis;
    for (int j = 0; j < COORDINATES && RANK > 0; j++) {
        if (dependent[j]) continue;
        for (int i = 0; i < COORDINATES; i++) {
            if (fabs(column[i]) * element_scales[CONSTRAINTS * i] > LARGEST_SLOPE * element_scales[CONSTRAINTS * j]) return 1;
        }
        column += COORDINATES;
    }
    return 0;
}

/* Describe the state that a step has led to as the next one needs it. */
static void change_chart(Instance *instance) { change_reference_quaternions(instance); }

/* Choose the coordinates; returns 0 with a reason in a singular configuration. */
static inline int prepare(Instance *instance) { return partition(instance, instance->state.dependent); }

#if SOLVER == IMPLICIT

/* -- an implicit step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38] ------------------- */

typedef struct {
    double guess[ROOM(UNKNOWNS)];
    double estimate[ROOM(COORDINATES)];
    int dependent[ROOM(COORDINATES)];
    int placed;
} Problem;

static const char *unknown_name(const Instance *instance, int unknown) {
    if (unknown >= FREEDOM) return state_names[unknown - FREEDOM];
    for (int j = 0; j < COORDINATES; j++) {
        if (!instance->state.dependent[j] && unknown-- == 0) return coordinate_names[j];
    }
    return "";
}

/* What the rule remembers of the independent coordinates and of the states. */
static void begin_history(const State *state, const Parts *parts) {
    if (HISTORY == 0) return;
    const double *from = state->history;
    double *to = parts->begin_history;
    *to++ = *from++;
    for (int k = 0; k < MOTION_HISTORY; k++) {
        for (int j = 0; j < COORDINATES; j++, from++) {
            if (!state->dependent[j]) *to++ = *from;
        }
    }
    COPY(to, from, STEP_HISTORY - 1 - MOTION_HISTORY * FREEDOM);
}

/* Set where the step begins, and predict its end. */
static void begin(Instance *instance, Problem *problem, double step) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    int k = 0;
    memcpy(problem->dependent, state->dependent, sizeof problem->dependent);
    for (int j = 0; j < COORDINATES; j++) {
        problem->estimate[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
        if (problem->dependent[j]) continue;
        parts->begin[k] = state->coordinates[j];
        parts->begin_rates[k] = state->velocities[j];
        parts->begin_accelerations[k] = state->accelerations[j];
        problem->guess[k++] = problem->estimate[j];
    }
    for (int i = 0; i < STATES; i++) {
        parts->begin[FREEDOM + i] = state->states[i];
        parts->begin_rates[FREEDOM + i] = state->rates[i];
        problem->guess[FREEDOM + i] = state->states[i] + step * state->rates[i];
    }
    begin_history(state, parts);
    *parts->step = step;
    problem->placed = 0;
}

/* (M'' z''_i - Q'', x' - f) [eq. 38]. */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    const Parts *parts = &instance->parts;
    double increments[ROOM(FREEDOM)] = {0.0};
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (!problem->dependent[j]) {
            increments[k] = unknowns[k] - problem->estimate[j];
            k++;
        }
    }
    for (int i = 0, k = 0; i < COORDINATES; i++) {
        if (!problem->dependent[i]) {
            problem->estimate[i] = unknowns[k++];
        } else if (problem->placed) { /* follow the iteration matrix: after small increments the loops are closed at once */
            double sum = 0.0;
            for (int c = 0; c < FREEDOM; c++) sum += parts->basis[i + COORDINATES * c] * increments[c];
            problem->estimate[i] += sum;
        }
    }
    if (!place(instance, problem->dependent, problem->estimate)) return 0;
    memcpy(problem->estimate, parts->coordinates, sizeof(double) * COORDINATES);
    problem->placed = 1;
    memcpy(parts->unknowns, unknowns, sizeof(double) * UNKNOWNS);
    reduced_residual(parts, residual);
    return 1;
}

static void iteration_matrix(Instance *instance, double *matrix) { reduced_iteration_matrix(&instance->parts, matrix); }

/* Bring the motion to the solution. */
static int land(Instance *instance, Problem *problem, const double *unknowns) {
    double residual[ROOM(UNKNOWNS)];
    return evaluate(instance, problem, unknowns, residual);
}

#if ERROR > 0
/* The residual where the loops are nearly closed by all coordinates, with a choice of them. */
static int evaluate_near(
    Instance *instance, const int *dependent, const double *coordinates, const double *unknowns, double *residual
) {
    if (!place_from(instance, dependent, coordinates, 1)) return 0;
    memcpy(instance->parts.unknowns, unknowns, sizeof(double) * UNKNOWNS);
    reduced_residual(&instance->parts, residual);
    return 1;
}
#endif

/* Choose other coordinates where the present ones get steep. */
static int finish(Instance *instance, Problem *problem) {
    int dependent[ROOM(COORDINATES)];
    if (needs_other_partition(instance, problem->dependent)) {
        if (!partition(instance, dependent)) return 0;
        if (memcmp(dependent, problem->dependent, sizeof(int) * COORDINATES) != 0) {
            memcpy(problem->dependent, dependent, sizeof(int) * COORDINATES);
        }
    }
    return 1;
}

#else

/* -- for explicit and linearly implicit solvers: y = (z_i, z_i', x, integrals) -------------------------------------- */

#define SIZE REDUCED_SIZE
#define CHAINED FREEDOM /* the first elements follow from others alone */

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

#endif
