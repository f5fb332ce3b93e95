/* Iteration matrices of steps in loops: their factors are in the memory `factors`. What is kept of one is the point that it was made
 * at, from which factors are found again, to the last bit, where those of another have taken their place. */

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
