/* Tangents of steps in loops: their factors are in the memory `factors`. What is kept of one is the point that it was made
 * at, from which factors are found again, to the last bit, where those of another have taken their place. */

/* The steps' own C says which arguments a tangent depends on, its step apart: OF_POINT. */
#define SIZE_OF(name, size) +(size)
typedef char point_has_room[TANGENT == 0 OF_POINT(SIZE_OF) ? 1 : -1];
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

/* Make the tangent where the residual was last evaluated; returns 0 where it is singular. */
static int make_tangent(Instance *instance, double *made) {
    const int regular = factorize_here(instance);
    COPY(made, instance->factored, TANGENT);
    return regular;
}

/* Get ready to use the tangent that the state keeps; the arguments stay as they are. */
static void hold_tangent(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    const double step = *parts->step, before = STEP_HISTORY > 0 ? *parts->begin_history : 0.0;
    double point[ROOM(TANGENT)];
    if (memcmp(instance->factored, state->tangent, sizeof(double) * TANGENT) == 0
        && memcmp(instance->factored_step, state->tangent_use, sizeof instance->factored_step) == 0) {
        return;
    }
    write_point(parts, point);
    read_point(parts, state->tangent);
    *parts->step = state->tangent_use[0];
    if (STEP_HISTORY > 0) *parts->begin_history = state->tangent_use[1];
    factorize_here(instance);
    read_point(parts, point);
    *parts->step = step;
    if (STEP_HISTORY > 0) *parts->begin_history = before;
}

/* Solve with the tangent that is held. */
static void solve_tangent(Instance *instance, const double *made, const double *right, double *solution) {
    (void)made;
    COPY(instance->parts.right, right, ALL_UNKNOWNS);
    step_changes(&instance->parts, solution);
}
