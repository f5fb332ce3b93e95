/* Dependent coordinates from independent ones: closing the loops, and the matrices that reduce the equations. */


/* The factors of the dependent columns of Phi_z: a square matrix, or where loop equations are redundant one with more
 * rows than columns, whose solutions are those of least squares. */
typedef struct {
    double matrix[ROOM(CONSTRAINTS * RANK)], scales[ROOM(RANK)];
    int order[ROOM(QR_ORDERS(CONSTRAINTS, RANK))];
} DependentFactors;

static int factorize_dependent(DependentFactors *factors) {
    if (!REDUNDANT) return factorize(RANK, factors->matrix, factors->order);
    return orthogonalize(CONSTRAINTS, RANK, factors->matrix, factors->scales, factors->order, NEXT_TO_ZERO) == RANK;
}

/* Solve for one right side of CONSTRAINTS elements, which is overwritten. */
static void solve_dependent(const DependentFactors *factors, double *right, double *solution) {
    if (!REDUNDANT) {
        substitute(RANK, factors->matrix, factors->order, right);
        COPY(solution, right, RANK);
    } else {
        solve_tall(CONSTRAINTS, RANK, factors->matrix, factors->scales, factors->order, right, solution);
    }
}

/* Write R_z and G [Jaiswal2021, eqs. 14 and 15]: of the inverse both are made, as in Python. */
static void reduce(const Parts *parts, const int *dependent, const int *chosen, const double *jacobian,
    const DependentFactors *factors) {
    double column[ROOM(CONSTRAINTS)], inverse[ROOM(RANK * CONSTRAINTS)], *basis = parts->basis;
    for (int i = 0; i < COORDINATES * CONSTRAINTS; i++) parts->lift[i] = 0.0;
    for (int i = 0; i < COORDINATES * FREEDOM; i++) basis[i] = 0.0;
    for (int k = 0; k < CONSTRAINTS; k++) {
        double *const solution = inverse + RANK * k;
        for (int i = 0; i < CONSTRAINTS; i++) column[i] = i == k ? 1.0 : 0.0;
        solve_dependent(factors, column, solution);
        for (int i = 0; i < RANK; i++) parts->lift[chosen[i] + COORDINATES * k] = solution[i];
    }
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) continue;
        for (int i = 0; i < RANK; i++) {
            double sum = 0.0;
            for (int k = 0; k < CONSTRAINTS; k++) sum += inverse[i + RANK * k] * jacobian[k + CONSTRAINTS * j];
            basis[chosen[i]] = -sum;
        }
        basis[j] = 1.0;
        basis += COORDINATES;
    }
}

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
    return fail(instance, "the loops cannot be closed: %.3g m or rad stays open", last);
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
