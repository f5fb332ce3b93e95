/* Dependent coordinates from independent ones: closing the loops. */

#include "reduction.c"

/* Close the loops, the independent coordinates being kept; writes z, R_z and G. Where the estimate is `near`, one increment
 * does, with R_z and G of the estimate. */
static int place_from(Instance *instance, const int *dependent, const double *coordinates, int near) {
    const Parts *parts = &instance->parts;
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)], step[ROOM(RANK)];
    DependentFactors factors;
    double last = HUGE_VAL;
    int chosen[ROOM(RANK)], count = 0;
    memcpy(parts->coordinates, coordinates, sizeof(double) * COORDINATES);
    if (RANK == 0) return 1;
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) chosen[count++] = j;
    }
    for (int iteration = 0; iteration < CLOSING_ITERATIONS; iteration++) {
        closure(parts, violation, jacobian);
        const double size = magnitude(violation, CONSTRAINTS);
        for (int k = 0; k < RANK; k++) {
            memcpy(
                factors.matrix + CONSTRAINTS * k, jacobian + CONSTRAINTS * chosen[k], sizeof(double) * CONSTRAINTS
            );
        }
        if (!all_finite(&size, 1) || !factorize_dependent(&factors)) break;
        const int closed = size <= CLOSED || (size >= CLOSING_STAGNATION * last && size <= ACCEPTED);
        if (closed || near) reduce(parts, dependent, chosen, jacobian, &factors);
        if (closed) return 1;
        last = size;
        solve_dependent(&factors, violation, step);
        for (int k = 0; k < RANK; k++) parts->coordinates[chosen[k]] -= step[k];
        if (near) return 1;
    }
    double largest = 0.0;
    for (int j = 0; j < COORDINATES; j++) largest = larger(largest, fabs(coordinates[j]));
    if (last > CLOSING_LOST * DBL_EPSILON * largest) {
        return fail(instance, "the loops cannot be closed: %.3g m or rad stays open", last);
    }
    return fail(
        instance, "the loops cannot be closed: %.3g m or rad stays open, for coordinates of %.3g have no more digits; start "
        "within a few turns", last, largest
    );
}

static int place(Instance *instance, const int *dependent, const double *coordinates) {
    return place_from(instance, dependent, coordinates, 0);
}

/* Choose by the lengths of columns, which are the same in every frame; marks dependent coordinates. Returns 0 where rank
 * is missing. */
static int choose(int rows, int columns, const double *jacobian, int rank, int *dependent) {
    double factors[ROOM(MOST_CONSTRAINTS * MOST_COORDINATES)];
    memcpy(factors, jacobian, sizeof(double) * (size_t)(rows * columns));
    return take_pivots(rows, columns, factors, rank, RANK_TOLERANCE, dependent);
}

static int partition(Instance *instance, int *dependent) {
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)];
    for (int j = 0; j < COORDINATES; j++) dependent[j] = 0;
    if (RANK == 0) return 1;
    closure(&instance->parts, violation, jacobian);
    for (int k = 0; k < CONSTRAINTS * COORDINATES; k++) jacobian[k] /= element_scales[k];
    if (choose(CONSTRAINTS, COORDINATES, jacobian, RANK, dependent)) return 1;
    return fail(
        instance,
        "the configuration is singular: the loop equations lose rank there, and double-step cannot part dependent "
        "from independent coordinates; take dca, hdca or dca-alm"
    );
}

/* Whether some coordinate moves much faster than an independent one, by the measure of the loops' lever arms. */
static int needs_other_partition(const Instance *instance, const int *dependent) {
    const double *column = instance->parts.basis;
    for (int j = 0; j < COORDINATES && RANK > 0; j++) {
        if (dependent[j]) continue;
        for (int i = 0; i < COORDINATES; i++) {
            if (fabs(column[i]) * element_scales[CONSTRAINTS * i] > LARGEST_SLOPE * element_scales[CONSTRAINTS * j]) return 1;
        }
        column += COORDINATES;
    }
    return 0;
}
