/* The matrices that reduce the equations to independent coordinates. */

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
