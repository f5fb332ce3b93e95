/* Dependent coordinates from independent ones: closing the loops, and the matrices that reduce the equations. */

#define CLOSED 5e-14   /* the loops are closed to this violation in m and rad ... */
#define ACCEPTED 1e-12 /* ... or, where round-off is larger, to this one */
#define CLOSING_ITERATIONS 15
#define STEEP 20.0     /* where a dependent coordinate moves this many times as fast, the choice is made anew */

/* Close the loops, the independent coordinates being kept; writes z, R_z and G. */
static int place(Instance *instance, const int *dependent, const double *coordinates) {
    const Parts *parts = &instance->parts;
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)];
    double factors[ROOM(CONSTRAINTS * CONSTRAINTS)];
    double last = HUGE_VAL;
    int pivots[ROOM(CONSTRAINTS)], chosen[ROOM(CONSTRAINTS)], count = 0;
    memcpy(parts->coordinates, coordinates, sizeof(double) * COORDINATES);
    if (CONSTRAINTS == 0) return 1;
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) chosen[count++] = j;
    }
    for (int iteration = 0; iteration < CLOSING_ITERATIONS; iteration++) {
        closure(parts, violation, jacobian);
        const double size = magnitude(violation, CONSTRAINTS);
        for (int k = 0; k < CONSTRAINTS; k++) {
            memcpy(factors + CONSTRAINTS * k, jacobian + CONSTRAINTS * chosen[k], sizeof(double) * CONSTRAINTS);
        }
        if (!all_finite(&size, 1) || !factorize(CONSTRAINTS, factors, pivots)) break;
        if (size <= CLOSED || (size >= 0.5 * last && size <= ACCEPTED)) {
            double column[ROOM(CONSTRAINTS)];
            int independent = 0;
            for (int i = 0; i < COORDINATES * CONSTRAINTS; i++) parts->lift[i] = 0.0;
            for (int i = 0; i < COORDINATES * FREEDOM; i++) parts->basis[i] = 0.0;
            for (int k = 0; k < CONSTRAINTS; k++) {
                for (int i = 0; i < CONSTRAINTS; i++) column[i] = i == k ? 1.0 : 0.0;
                substitute(CONSTRAINTS, factors, pivots, column);
                for (int i = 0; i < CONSTRAINTS; i++) parts->lift[chosen[i] + COORDINATES * k] = column[i];
            }
            for (int j = 0; j < COORDINATES; j++) {
                if (dependent[j]) continue;
                memcpy(column, jacobian + CONSTRAINTS * j, sizeof(double) * CONSTRAINTS);
                substitute(CONSTRAINTS, factors, pivots, column);
                for (int i = 0; i < CONSTRAINTS; i++) {
                    parts->basis[chosen[i] + COORDINATES * independent] = -column[i];
                }
                parts->basis[j + COORDINATES * independent] = 1.0;
                independent++;
            }
            return 1;
        }
        last = size;
        substitute(CONSTRAINTS, factors, pivots, violation);
        for (int k = 0; k < CONSTRAINTS; k++) parts->coordinates[chosen[k]] -= violation[k];
    }
    return fail(instance, "the loops cannot be closed: %.3g m or rad stays open", last);
}

static int partition(Instance *instance, int *dependent) {
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)];
    for (int j = 0; j < COORDINATES; j++) dependent[j] = 0;
    if (CONSTRAINTS == 0) return 1;
    closure(&instance->parts, violation, jacobian);
    if (choose(CONSTRAINTS, COORDINATES, jacobian, CONSTRAINTS, dependent)) return 1;
    return fail(
        instance,
        "the configuration is singular: the loop equations lose rank there, and double-step cannot part dependent "
        "from independent coordinates (the formulation 'penalty' can pass through)"
    );
}
