/* What formulations share whose unknowns have all coordinates among them. */

#if SOLVER == IMPLICIT

#if ERROR > 0
/* The residual, for which all coordinates are among the unknowns. */
static int evaluate_near(
    Instance *instance, const int *dependent, const double *coordinates, const double *unknowns, double *residual
) {
    (void)dependent;
    (void)coordinates;
    return evaluate(instance, NULL, unknowns, residual);
}
#endif

#else

/* -- the derivatives of y' where a step of a Rosenbrock method begins, as they are traced whatever w is ------------- */

#if FACTORS == 0

/* The derivative of y' by y, chained coordinates apart, at the state. */
static int find_slope(Instance *instance, double time, double *slope) {
    double y[ROOM(SIZE)];
    pack(&instance->state, y);
    load_y(instance, time, y);
    first_order_slope(&instance->parts, slope);
    return 1;
}

#endif

/* The change of y' with the inputs in time, where the slope was found. */
static int find_drift(Instance *instance, double *drift) {
    first_order_drift(&instance->parts, drift);
    return 1;
}

#endif
