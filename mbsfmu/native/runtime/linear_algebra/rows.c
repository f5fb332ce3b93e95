/* Which loop equations count where some follow from others. */



/* The last of RANK pivots that take some rows of Phi_z in order of their distances, and that order; `turned` is room for
 * these rows. */
static double last_pivot(const double *jacobian, const int *rows, int count, double *turned, int *order) {
    double scales[ROOM(CONSTRAINTS)];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < COORDINATES; j++) turned[j + COORDINATES * i] = jacobian[rows[i] + CONSTRAINTS * j];
    }
    const int rank = orthogonalize(COORDINATES, count, turned, scales, order, 0.0);
    return RANK > 0 && rank >= RANK ? fabs(turned[(COORDINATES + 1) * (RANK - 1)]) : 0.0;
}

/* Choose independent rows by pivoting; those of now are kept while they are nearly as good. Returns whether `active`
 * has changed; where `first`, nothing is kept. */
static inline int choose_rows(const Parts *parts, double *active, int first) {
    double violation[ROOM(CONSTRAINTS)], *jacobian = scratch_of_rows(parts), *turned = jacobian + OF_PHI_Z;
    int every[ROOM(CONSTRAINTS)], used[ROOM(CONSTRAINTS)];
    int order[ROOM(QR_ORDERS(COORDINATES, CONSTRAINTS))], ignored[ROOM(QR_ORDERS(COORDINATES, CONSTRAINTS))];
    int count = 0;
    if (!REDUNDANT) return 0;
    closure(parts, violation, jacobian);
    for (int i = 0; i < CONSTRAINTS; i++) {
        every[i] = i;
        if (active[i] == 1.0) used[count++] = i;
    }
    const double best = last_pivot(jacobian, every, CONSTRAINTS, turned, order);
    if (!first && last_pivot(jacobian, used, count, turned, ignored) >= WORSE * best) return 0;
    for (int i = 0; i < CONSTRAINTS; i++) active[i] = 0.0;
    for (int k = 0; k < RANK; k++) active[order[k]] = 1.0;
    return 1;
}
