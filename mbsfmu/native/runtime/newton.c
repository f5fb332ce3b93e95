/* Newton iteration for the equations of a step [Jaiswal2021, eq. 37]. */

#define NEWTON_ITERATIONS 10
#define NEGLIGIBLE 1e-5 /* an increment below this share of its tolerance is left out and saves an evaluation */

static int within_limits(const double *increment, double share) {
    for (int i = 0; i < UNKNOWNS; i++) {
        if (!(fabs(increment[i]) <= share * limit(i))) return 0;
    }
    return 1;
}

/* The unknown that moves most, by its tolerance. */
static int most_moving(const double *increment) {
    double most = -1.0;
    int unknown = 0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double share = fabs(increment[i]) / limit(i);
        if (share > most) {
            most = share;
            unknown = i;
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
        if (within_limits(increment, 1.0)) return iteration;
        if (!evaluate(instance, problem, unknowns, residual)) return 0;
        solve_for_increment(matrix, pivots, residual, increment);
        if (within_limits(increment, 1.0)) {
            *evaluated = within_limits(increment, NEGLIGIBLE);
            if (*evaluated) return iteration;
            add_increment(unknowns, increment);
            updated(instance, unknowns);
            return iteration;
        }
    }
    const int worst = most_moving(increment);
    return fail(
        instance, "after %d iterations %s still moves by %.3g, tolerance %.3g", NEWTON_ITERATIONS,
        unknown_name(instance, worst), fabs(increment[worst]), limit(worst)
    );
}
