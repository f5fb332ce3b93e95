/* Stages of linearly implicit methods in loops: the matrix is factored along the tree, in the memory `factors`; as
 * mbsfmu/formulations/recorded_steps.py. */

/* Where a step begins. */
typedef struct Linearization {
    double share;                       /* h gamma */
} Linearization;

/* Bring the arguments to where the state is. */
static int find_derivatives(Instance *instance, const Attempt *attempt) {
    return load_begin(instance, attempt->time, attempt->start);
}

/* Prepare solutions for h gamma, where a step is tried. */
static int factorize_step(Instance *instance, const Attempt *attempt) {
    const Parts *parts = &instance->parts;
    double pivots[ROOM(PIVOTS)];
    if (!load_begin(instance, attempt->time, attempt->start)) return 0;
    *parts->step = instance->linearization->share = attempt->step * DIAGONAL;
    step_factors(parts, pivots);
    return all_finite(pivots, PIVOTS) || fail(instance, "the matrix of the step is singular");
}

/* Whether an increment solves what it should: no rows of the matrix have been exchanged. */
static int is_solved(Instance *instance, Attempt *attempt, const double *right, const double *increment) {
    const Parts *parts = &instance->parts;
    double missing[ROOM(CONTROLLED)];
    if (!load_begin(instance, attempt->time, attempt->start)) return 0;
    COPY(parts->right, increment, CONTROLLED);
    first_order_left(parts, missing);
    for (int i = 0; i < CONTROLLED; i++) missing[i] = instance->linearization->share * (missing[i] - right[i]);
    return size_of(instance, CONTROLLED, attempt->start, attempt->start, missing) <= UNSOLVED;
}

/* Solve for one stage; the right side becomes the increment. */
static int solve_stage(Instance *instance, Attempt *attempt, int stage) {
    const Parts *parts = &instance->parts;
    double before[ROOM(CONTROLLED)], *const right = attempt->increments + SIZE * stage;
    COPY(before, right, CONTROLLED);
    COPY(parts->right, right, CONTROLLED);
    COPY(parts->right_of_integrals, right + CONTROLLED, INTEGRALS);
    step_changes(parts, right);
    if (stage > 0 || is_solved(instance, attempt, before, right)) return 1;
    return fail(instance, "the equations of the step are not solved: pivots are small");
}
