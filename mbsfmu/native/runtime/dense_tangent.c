/* Tangents of steps as matrices; what is kept of one is its inverse. */

/* Make the tangent where the residual was last evaluated; returns 0 where it is singular. */
static inline int make_tangent(Instance *instance, double *made) {
    double *const matrix = made + TANGENT;
    int pivots[ROOM(ALL_UNKNOWNS)];
    tangent(instance, matrix);
    return invert(ALL_UNKNOWNS, matrix, made, pivots);
}

/* Get ready to use the tangent that the state keeps. */
static inline void hold_tangent(Instance *instance) { (void)instance; }

/* Solve with a tangent. */
static inline void solve_tangent(Instance *instance, const double *made, const double *right, double *solution) {
    (void)instance;
    multiply(ALL_UNKNOWNS, made, right, solution);
}
