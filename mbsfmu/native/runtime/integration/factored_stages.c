/* Stages of linearly implicit methods in loops: the matrix is factored along the tree, in the memory `factors`; as
 * mbsfmu/formulations/recorded_jacobian.py. */

/* Where a step begins. */
typedef struct {
    double start[ROOM(SIZE)], rates[ROOM(SIZE)], drift[ROOM(SIZE)];
    double time, share;                 /* h gamma */
} Linearization;

/* Bring the arguments to where the state is. */
static int find_derivatives(Instance *instance, Linearization *begin, double time) {
    begin->time = time;
    return load_begin(instance, time, begin->start);
}

/* Prepare solutions for h gamma. */
static int factorize_step(Instance *instance, Linearization *begin, double share) {
    const Parts *parts = &instance->parts;
    double pivots[ROOM(PIVOTS)];
    begin->share = share;
    if (!load_begin(instance, begin->time, begin->start)) return 0;
    *parts->step = share;
    step_factors(parts, pivots);
    return all_finite(pivots, PIVOTS) || fail(instance, "the matrix of the step is singular");
}

/* Whether an increment solves what it should: no rows of the matrix have been exchanged. */
static int is_solved(Instance *instance, const Linearization *begin, const double *right, const double *increment) {
    const Parts *parts = &instance->parts;
    double missing[ROOM(CONTROLLED)];
    if (!load_begin(instance, begin->time, begin->start)) return 0;
    COPY(parts->right, increment, CONTROLLED);
    first_order_left(parts, missing);
    for (int i = 0; i < CONTROLLED; i++) missing[i] = begin->share * (missing[i] - right[i]);
    return size_of_first(CONTROLLED, &instance->state, begin->start, begin->start, missing) <= UNSOLVED;
}

/* Solve for one stage; the right side becomes the increment. */
static int solve_stage(Instance *instance, const Linearization *begin, int stage, double *right) {
    const Parts *parts = &instance->parts;
    double before[ROOM(CONTROLLED)];
    COPY(before, right, CONTROLLED);
    COPY(parts->right, right, CONTROLLED);
    COPY(parts->right_of_integrals, right + CONTROLLED, INTEGRALS);
    step_changes(parts, right);
    if (stage > 0 || is_solved(instance, begin, before, right)) return 1;
    return fail(instance, "the equations of the step are not solved: pivots are small");
}
