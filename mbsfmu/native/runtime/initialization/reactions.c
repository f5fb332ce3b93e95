/* Forces and moments in joints; where redundant constraints leave them open, those of least norm. */

#if PLAY > 0

/* Take away what redundant joints hold against each other: r - A N mu with Phi_z^T N = 0 and the shortest rest. */
static void shorten_reactions(Parts *parts, double *values) {
    double *jacobian = scratch_of_reactions(parts);
    double *turned = jacobian + ALL_CONSTRAINTS * COORDINATES, *idle = turned + COORDINATES * ALL_CONSTRAINTS;
    double *held = idle + ALL_CONSTRAINTS * ALL_CONSTRAINTS, *work = held + REACTIONS * PLAY, solution[PLAY];
    int orders[SQUARES_ORDERS(MOST(COORDINATES, REACTIONS), ALL_CONSTRAINTS)];
    all_closure_jacobian(parts, jacobian);
    for (int i = 0; i < ALL_CONSTRAINTS; i++) {
        for (int j = 0; j < COORDINATES; j++) turned[j + COORDINATES * i] = jacobian[i + ALL_CONSTRAINTS * j];
    }
    null_space(COORDINATES, ALL_CONSTRAINTS, turned, idle, 0.0, RANK, work, orders);
    for (int k = 0; k < PLAY; k++) {
        COPY(parts->shared_multipliers, idle + ALL_CONSTRAINTS * k, ALL_CONSTRAINTS);
        shared_reactions(parts, held + REACTIONS * k);
    }
    least_squares(REACTIONS, PLAY, held, values, solution, 1e-12, work, orders);
    for (int k = 0; k < PLAY; k++) {
        for (int i = 0; i < REACTIONS; i++) values[i] -= held[i + REACTIONS * k] * solution[k];
    }
}

#else

static void shorten_reactions(Parts *parts, double *values) {
    (void)parts;
    (void)values;
}

#endif
