/* Iteration matrices of steps as matrices; what is kept of one is its inverse. */

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
