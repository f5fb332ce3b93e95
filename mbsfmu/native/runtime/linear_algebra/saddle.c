/* The equations of motion with multipliers, solved at an instant. */

#if SOLVES_SADDLE

/* Replace multipliers by the shortest of all that have the same effect. */
static void shorten(const Parts *parts, double *multipliers) {
    double violation[ROOM(CONSTRAINTS)], effect[ROOM(COORDINATES)];
    double *jacobian = scratch_of_multipliers(parts), *turned = jacobian + OF_PHI_Z, *work = turned + OF_PHI_Z;
    int orders[ROOM(SQUARES_ORDERS(COORDINATES, CONSTRAINTS))];
    closure(parts, violation, jacobian);
    for (int j = 0; j < COORDINATES; j++) {
        effect[j] = 0.0;
        for (int i = 0; i < CONSTRAINTS; i++) {
            turned[j + COORDINATES * i] = jacobian[i + CONSTRAINTS * j];
            effect[j] += jacobian[i + CONSTRAINTS * j] * multipliers[i];
        }
    }
    least_squares(COORDINATES, CONSTRAINTS, turned, effect, multipliers, RANK_TOLERANCE, work, orders);
}

#if LEAVES_OUT

/* Leave out equations that nearly follow from others at a change point, where multipliers grow without bound; `turned`
 * is room for all. */
static void leave_out(const double *jacobian, double near, double *turned, double *active) {
    double scales[CONSTRAINTS];
    int order[QR_ORDERS(COORDINATES, CONSTRAINTS)];
    for (int j = 0; j < COORDINATES; j++) {
        for (int i = 0; i < CONSTRAINTS; i++) {
            const int place = i + CONSTRAINTS * j;
            turned[j + COORDINATES * i] = jacobian[place] / element_scales[place];
        }
    }
    const int rank = orthogonalize(COORDINATES, CONSTRAINTS, turned, scales, order, near);
    if (rank >= RANK) return;
    for (int i = 0; i < CONSTRAINTS; i++) active[i] = 0.0;
    for (int k = 0; k < rank; k++) active[order[k]] = 1.0;
}

#endif

/* Solve for accelerations and multipliers; equations that stand out by a share below `near` may be left out. */
static void solve_saddle(const Parts *parts, const double *mass, double near, double *load) {
    double *matrix = scratch_of_saddle(parts), *kept = matrix + SADDLE * SADDLE, *work = kept + SADDLE * SADDLE;
    double *jacobian = work + SQUARES_WORK(SADDLE, SADDLE);
    double violation[ROOM(CONSTRAINTS)], active[ROOM(CONSTRAINTS)];
    int pivots[ROOM(SADDLE)];
    closure(parts, violation, jacobian);
    for (int i = 0; i < CONSTRAINTS; i++) active[i] = 1.0;
    choose_rows(parts, active, 1);
#if LEAVES_OUT
    leave_out(jacobian, near, jacobian + OF_PHI_Z, active);
#else
    (void)near;
#endif
    for (int i = 0; i < SADDLE * SADDLE; i++) matrix[i] = 0.0;
    for (int j = 0; j < COORDINATES; j++) COPY(matrix + SADDLE * j, mass + COORDINATES * j, COORDINATES);
    for (int i = 0; i < CONSTRAINTS; i++) {
        if (active[i] == 0.0) { /* one that follows from the others gets no multiplier here */
            matrix[(SADDLE + 1) * (COORDINATES + i)] = 1.0;
            load[COORDINATES + i] = 0.0;
            continue;
        }
        for (int j = 0; j < COORDINATES; j++) {
            matrix[COORDINATES + i + SADDLE * j] = jacobian[i + CONSTRAINTS * j];
            matrix[j + SADDLE * (COORDINATES + i)] = jacobian[i + CONSTRAINTS * j];
        }
    }
    COPY(kept, matrix, SADDLE * SADDLE);
    /* In absolute coordinates all constraints are in use: some may be redundant, which pivots do not tell. */
    if (!ABSOLUTE && factorize(SADDLE, matrix, pivots)) {
        substitute(SADDLE, matrix, pivots, load);
    } else {
        double right[ROOM(SADDLE)];
        int orders[ROOM(SQUARES_ORDERS(SADDLE, SADDLE))];
        COPY(right, load, SADDLE);
        const double tolerance = ABSOLUTE ? RANK_TOLERANCE : 1e-15 * ROOM(SADDLE);
        least_squares(SADDLE, SADDLE, kept, right, load, tolerance, work, orders);
    }
    if (REDUNDANT) shorten(parts, load + COORDINATES);
}

#endif
