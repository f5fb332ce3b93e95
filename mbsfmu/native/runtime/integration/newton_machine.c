/* What Newton's iteration asks of a machine: newton.h and newton.c are made of mbsfmu/stepping/newton.py. */

#if FACTORS > 0

/* -- iteration matrices of steps in loops: their factors are in the memory `factors` -------------------------------- */

/* What is kept of one is the point that it was made at, from which factors are found again, to the last bit, where those of
 * another have taken their place. */

/* The steps' own C says which arguments an iteration matrix depends on, its step apart: OF_POINT. */
#define SIZE_OF(name, size) +(size)
typedef char point_has_room[ITERATION_MATRIX == 0 OF_POINT(SIZE_OF) ? 1 : -1];
#undef SIZE_OF

static void write_point(const Parts *parts, double *point) {
#define WRITE(name, size) COPY(point, parts->name, size), point += (size);
    OF_POINT(WRITE)
#undef WRITE
}

static void read_point(const Parts *parts, const double *point) {
#define READ(name, size) COPY(parts->name, point, size), point += (size);
    OF_POINT(READ)
#undef READ
}

/* Find the factors where the arguments are; returns 0 where a pivot vanishes. */
static int factorize_here(Instance *instance) {
    const Parts *parts = &instance->parts;
    double pivots[ROOM(PIVOTS)];
    step_factors(parts, pivots);
    write_point(parts, instance->factored);
    instance->factored_step[0] = *parts->step;
    instance->factored_step[1] = STEP_HISTORY > 0 ? *parts->begin_history : 0.0;
    return all_finite(pivots, PIVOTS);
}

/* Make the iteration matrix where the residual was last evaluated; returns 0 where it is singular. */
static int make_iteration_matrix(Instance *instance, double *made) {
    const int regular = factorize_here(instance);
    COPY(made, instance->factored, ITERATION_MATRIX);
    return regular;
}

/* Get ready to use the iteration matrix that the state keeps; the arguments stay as they are. */
static void restore_iteration_matrix(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    const double step = *parts->step, before = STEP_HISTORY > 0 ? *parts->begin_history : 0.0;
    double point[ROOM(ITERATION_MATRIX)];
    if (memcmp(instance->factored, state->iteration_matrix, sizeof(double) * ITERATION_MATRIX) == 0
        && memcmp(instance->factored_step, state->iteration_matrix_use, sizeof instance->factored_step) == 0) {
        return;
    }
    write_point(parts, point);
    read_point(parts, state->iteration_matrix);
    *parts->step = state->iteration_matrix_use[0];
    if (STEP_HISTORY > 0) *parts->begin_history = state->iteration_matrix_use[1];
    factorize_here(instance);
    read_point(parts, point);
    *parts->step = step;
    if (STEP_HISTORY > 0) *parts->begin_history = before;
}

/* Solve with the iteration matrix that is held. */
static void solve_iteration_matrix(Instance *instance, const double *made, const double *right, double *solution) {
    (void)made;
    COPY(instance->parts.right, right, ALL_UNKNOWNS);
    step_changes(&instance->parts, solution);
}

#else

/* -- iteration matrices of steps as matrices; what is kept of one is its inverse ------------------------------------ */

#if STEP_MULTIPLIERS > 0 && STIFFENS_PENALTY

/* Which share of a violation in the weakest direction an increment leaves; mbsfmu/formulations/penalty.py says how. Both
 * pushes have room for the multipliers. */
static double left_of_weakest(const double *inverse, double softness, double *push, double *next) {
    const double *const held = inverse + ALL_UNKNOWNS * UNKNOWNS;
    double sizes[3], most = -1.0;
    for (int j = 0; j < UNKNOWNS; j++) {
        const double *const loaded = inverse + ALL_UNKNOWNS * j + UNKNOWNS;
        double square = 0.0;
        for (int i = 0; i < STEP_MULTIPLIERS; i++) square += loaded[i] * loaded[i];
        if (square <= most) continue;
        most = square;
        COPY(push, loaded, STEP_MULTIPLIERS);
    }
    for (int k = 0; k < 3; k++) {
        double square = 0.0;
        for (int row = 0; row < ALL_UNKNOWNS; row++) {
            double sum = 0.0;
            for (int i = 0; i < STEP_MULTIPLIERS; i++) sum += held[row + ALL_UNKNOWNS * i] * push[i];
            if (row < UNKNOWNS) {
                square += sum * sum;
            } else {
                next[row - UNKNOWNS] = -softness * sum;
            }
        }
        sizes[k] = sqrt(square);
        COPY(push, next, STEP_MULTIPLIERS);
    }
    return sizes[2] > DISTINCT * sizes[0] ? sizes[2] / sizes[1] : 0.0;
}

#endif

/* Make the iteration matrix where the residual was last evaluated; returns 0 where it is singular. */
static inline int make_iteration_matrix(Instance *instance, double *made) {
    double *const matrix = made + ITERATION_MATRIX;
    int pivots[ROOM(ALL_UNKNOWNS)];
    iteration_matrix(instance, matrix);
#if STEP_MULTIPLIERS > 0 && STIFFENS_PENALTY
    /* With a penalty factor that the weakest constraints need. */
    const Parts *parts = &instance->parts;
    const double penalty = *parts->penalty;
    if (!invert(ALL_UNKNOWNS, matrix, made, pivots)) return 0;
    const double left = left_of_weakest(made, 1.0 / penalty, matrix, matrix + STEP_MULTIPLIERS);
    const double factor = stiffening(left, WEAK_IN_STEPS);
    if (factor == 1.0) return 1;
    *parts->penalty = factor * penalty;
    augmented_iteration_matrix(parts, matrix);
    *parts->penalty = penalty;
#endif
    return invert(ALL_UNKNOWNS, matrix, made, pivots);
}

/* Get ready to use the iteration matrix that the state keeps. */
static inline void restore_iteration_matrix(Instance *instance) { (void)instance; }

/* Solve with an iteration matrix. */
static inline void solve_iteration_matrix(Instance *instance, const double *made, const double *right, double *solution) {
    (void)instance;
    multiply(ALL_UNKNOWNS, made, right, solution);
}

#endif

/* -- what is kept from step to step --------------------------------------------------------------------------------- */

static int make_matrix(Instance *instance, Iteration *iteration) {
    iteration->inverse = iteration->made;
    return make_iteration_matrix(instance, iteration->made);
}

static void solve_matrix(Instance *instance, Iteration *iteration) {
    solve_iteration_matrix(instance, iteration->inverse, iteration->residual, iteration->increment);
}

/* Begin with the iteration matrix that the state keeps, where it is one of such a step. */
static void reuse_iteration_matrix(Instance *instance, double step, Iteration *iteration) {
    State *state = &instance->state;
    const double *use = state->iteration_matrix_use, before = HISTORY > 0 ? state->history[0] : 0.0;
    iteration->made = scratch_of_iteration_matrix(&instance->parts);
    iteration->rate = use[4];
    iteration->own = MOST_INCREMENTS > 0 || use[0] == 0.0 || !(fabs(step - use[0]) <= SAME_STEP * use[0])
        || !(fabs(before - use[1]) <= SAME_STEP * use[1]);
    if (iteration->own) return;
    iteration->inverse = state->iteration_matrix;
    restore_iteration_matrix(instance);
}

/* Keep the iteration matrix that was used last; none where a new one is due. */
static void store_iteration_matrix(Instance *instance, double step, const Iteration *iteration) {
    State *state = &instance->state;
    double *const use = state->iteration_matrix_use;
    const double spent = iteration->spent;
    if (iteration->iteration_matrices > 0) {
        if (!instance->has_replaced) COPY(instance->replaced, state->iteration_matrix, ITERATION_MATRIX);
        instance->has_replaced = 1;
        COPY(state->iteration_matrix, iteration->made, ITERATION_MATRIX);
        use[0] = step;
        use[1] = HISTORY > 0 ? state->history[0] : 0.0;
        use[2] = 1.0;
        use[3] = spent;
        use[4] = iteration->rate;
    } else if (spent * use[2] > use[3]) {
        forget_iteration_matrix(state);
    } else {
        use[2] += 1.0;
        use[3] += spent;
        use[4] = iteration->rate;
    }
}
