/* Newton iteration for the equations of a step [Jaiswal2021, eq. 37]. */



/* The largest increment by its tolerance; infinite where one is not finite. */
static double size_of(const double *unknowns, const double *increment) {
    double size = 0.0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double share = fabs(increment[i]) / (tolerance(i) * larger(nominal(i), fabs(unknowns[i])));
        if (!(share <= size)) size = share;
    }
    return size - size == 0.0 ? size : HUGE_VAL;
}

static int is_round_off(const double *unknowns, const double *increment, double size, double before) {
    if (!(size > STAGNATING * before)) return 0;
    for (int i = 0; i < UNKNOWNS; i++) {
        if (!(fabs(increment[i]) <= ROUNDED * larger(nominal(i), fabs(unknowns[i])))) return 0;
    }
    return 1;
}

/* The unknown that moves most, by its tolerance; writes how far, and the tolerance. */
static int most_moving(const double *unknowns, const double *increment, double *moves, double *allowed) {
    double most = -1.0;
    int unknown = 0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double size = fabs(increment[i]), limit = tolerance(i) * larger(nominal(i), fabs(unknowns[i]));
        if (size / limit > most) {
            most = size / limit;
            unknown = i;
            *moves = size;
            *allowed = limit;
        }
    }
    return unknown;
}

static void add_increment(double *unknowns, const double *increment) {
    for (int i = 0; i < UNKNOWNS; i++) unknowns[i] += increment[i];
}

static void solve_for_increment(const double *factors, const int *pivots, const double *residual, double *increment) {
    for (int i = 0; i < UNKNOWNS; i++) increment[i] = -residual[i];
    substitute(UNKNOWNS, factors, pivots, increment);
}

/* Iterate until every increment is below its tolerance; returns the number of iterations, or 0 with a reason.
 * An iteration is a Jacobian, its factors and an increment. A following increment with the same factors that is
 * already below its tolerance is applied too, and ends the iteration without another Jacobian. `evaluated` tells
 * whether the equations were last evaluated at the solution. */
static int newton(Instance *instance, Problem *problem, double *unknowns, int *evaluated) {
    double residual[ROOM(UNKNOWNS)], increment[ROOM(UNKNOWNS)], matrix[ROOM(UNKNOWNS * UNKNOWNS)];
    double size = HUGE_VAL, before = HUGE_VAL;
    int pivots[ROOM(UNKNOWNS)];
    memcpy(unknowns, problem->guess, sizeof(double) * UNKNOWNS);
    *evaluated = 0;
    if (!evaluate(instance, problem, unknowns, residual)) return 0;
    for (int iteration = 1; iteration <= NEWTON_ITERATIONS; iteration++) {
        tangent(instance, matrix);
        const int regular = factorize(UNKNOWNS, matrix, pivots);
        if (regular) solve_for_increment(matrix, pivots, residual, increment);
        if (!regular || !all_finite(increment, UNKNOWNS)) {
            return fail(instance, "the equations of the step are singular or not finite in iteration %d", iteration);
        }
        add_increment(unknowns, increment);
        updated(instance, unknowns);
        before = size;
        size = size_of(unknowns, increment);
        if (size <= 1.0 || is_round_off(unknowns, increment, size, before)) return iteration;
        if (!evaluate(instance, problem, unknowns, residual)) return 0;
        solve_for_increment(matrix, pivots, residual, increment);
        const double following = size_of(unknowns, increment);
        if (following <= 1.0) {
            *evaluated = following <= NEGLIGIBLE;
            if (*evaluated) return iteration;
            add_increment(unknowns, increment);
            updated(instance, unknowns);
            return iteration;
        }
    }
    double moves = 0.0, allowed = 0.0;
    const int worst = most_moving(unknowns, increment, &moves, &allowed);
    return fail(
        instance, "after %d iterations %s still moves by %.3g, tolerance %.3g%s", NEWTON_ITERATIONS,
        unknown_name(instance, worst), moves, allowed,
        size > STAGNATING * before ? "; increments hardly shrink, its tolerance may be too small" : ""
    );
}
