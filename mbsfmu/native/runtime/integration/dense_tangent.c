/* Tangents of steps as matrices; what is kept of one is its inverse. */

#if STEP_MULTIPLIERS > 0 && FIRMS

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

/* Make the tangent where the residual was last evaluated; returns 0 where it is singular. */
static inline int make_tangent(Instance *instance, double *made) {
    double *const matrix = made + TANGENT;
    int pivots[ROOM(ALL_UNKNOWNS)];
    tangent(instance, matrix);
#if STEP_MULTIPLIERS > 0 && FIRMS
    /* With a penalty factor that the weakest constraints need. */
    const Parts *parts = &instance->parts;
    const double penalty = *parts->penalty;
    if (!invert(ALL_UNKNOWNS, matrix, made, pivots)) return 0;
    const double left = left_of_weakest(made, 1.0 / penalty, matrix, matrix + STEP_MULTIPLIERS);
    const double factor = firming(left, WEAK_IN_STEPS);
    if (factor == 1.0) return 1;
    *parts->penalty = factor * penalty;
    augmented_tangent(parts, matrix);
    *parts->penalty = penalty;
#endif
    return invert(ALL_UNKNOWNS, matrix, made, pivots);
}

/* Get ready to use the tangent that the state keeps. */
static inline void hold_tangent(Instance *instance) { (void)instance; }

/* Solve with a tangent. */
static inline void solve_tangent(Instance *instance, const double *made, const double *right, double *solution) {
    (void)instance;
    multiply(ALL_UNKNOWNS, made, right, solution);
}
