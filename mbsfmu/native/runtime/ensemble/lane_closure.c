/* Dependent coordinates of several machines at once from independent ones: as double_step.c has them of one. */

/* Invert the dependent columns of Phi_z, or find what solves for them by least squares; returns the singular lanes. */
static Mask invert_dependent(Lanes *matrix, Lanes *inverse) {
#if RANK < CONSTRAINTS
    Mask singular = {0};
    for (int lane = 0; lane < LANES; lane++) {
        double factors[ROOM(CONSTRAINTS * RANK)], scales[ROOM(RANK)], column[ROOM(CONSTRAINTS)], solution[ROOM(RANK)];
        int order[ROOM(QR_ORDERS(CONSTRAINTS, RANK))];
        get_lane(factors, matrix, lane, CONSTRAINTS * RANK);
        if (orthogonalize(CONSTRAINTS, RANK, factors, scales, order, NEXT_TO_ZERO) != RANK) {
            singular[lane] = -1;
            continue;
        }
        for (int k = 0; k < CONSTRAINTS; k++) {
            for (int i = 0; i < CONSTRAINTS; i++) column[i] = i == k ? 1.0 : 0.0;
            solve_tall(CONSTRAINTS, RANK, factors, scales, order, column, solution);
            set_lane(inverse + RANK * k, lane, solution, RANK);
        }
    }
    return singular;
#else
    Mask pivots[ROOM(RANK)];
    const Mask singular = invert_lanes(RANK, matrix, pivots);
    COPY_LANES(inverse, matrix, RANK * RANK);
    return singular;
#endif
}

/* Write R_z and G [Jaiswal2021, eqs. 14 and 15]; their other elements stay as they are. */
static void reduce_lanes(const Group *group, const Lanes *jacobian, const Lanes *inverse) {
    const LaneParts *parts = &group->parts;
    Lanes column[ROOM(CONSTRAINTS)], product[ROOM(RANK)];
    for (int k = 0; k < CONSTRAINTS; k++) {
        for (int i = 0; i < RANK; i++) {
            put(group, parts->lift + COORDINATES * k, group->dependent[i], inverse[i + RANK * k]);
        }
    }
    for (int j = 0; j < FREEDOM; j++) {
        Lanes *const basis = parts->basis + COORDINATES * j;
        for (int k = 0; k < CONSTRAINTS; k++) {
            column[k] = pick_apart(group, jacobian + k, group->independent[j], CONSTRAINTS);
        }
        multiply_lanes(RANK, CONSTRAINTS, inverse, column, product);
        for (int i = 0; i < RANK; i++) put(group, basis, group->dependent[i], -product[i]);
        put(group, basis, group->independent[j], splat(1.0));
    }
}

#if RANK > 0

/* The loop equations at the coordinates. */
typedef struct {
    Lanes violation[CONSTRAINTS], jacobian[CONSTRAINTS * COORDINATES];
    Lanes inverse[RANK * CONSTRAINTS]; /* of the dependent columns */
    Lanes size;                     /* of the violation */
    Mask lost;                      /* lanes where they cannot be solved */
} LaneClosure;

static void find_closure(const Group *group, LaneClosure *closure) {
    Lanes matrix[CONSTRAINTS * RANK], sum = {0};
    lanes_closure(&group->parts, closure->violation, closure->jacobian);
    for (int i = 0; i < CONSTRAINTS; i++) sum += closure->violation[i] * closure->violation[i];
    closure->size = lanes_sqrt(sum);
    for (int k = 0; k < RANK; k++) {
        for (int i = 0; i < CONSTRAINTS; i++) {
            matrix[i + CONSTRAINTS * k] = pick_apart(group, closure->jacobian + i, group->dependent[k], CONSTRAINTS);
        }
    }
    closure->lost = invert_dependent(matrix, closure->inverse) | ~(closure->size - closure->size == (Lanes){0});
}

/* Move the dependent coordinates to where the loops are closed by their linearization, in some lanes. */
static void close_linearly(const Group *group, const LaneClosure *closure, Mask open) {
    Lanes *const coordinates = group->parts.coordinates, move[RANK];
    multiply_lanes(RANK, CONSTRAINTS, closure->inverse, closure->violation, move);
    for (int k = 0; k < RANK; k++) {
        const Lanes before = pick(group, coordinates, group->dependent[k]);
        put(group, coordinates, group->dependent[k], select_lanes(open, before - move[k], before));
    }
}

#endif

/* Close the loops from the estimate on, in lanes that count; writes z, R_z and G, and returns lanes where they stay open. */
static Mask place_lanes(const Group *group, const Lanes *estimate, Mask open) {
    const LaneParts *parts = &group->parts;
    COPY_LANES(parts->coordinates, estimate, COORDINATES);
#if RANK > 0
    LaneClosure closure; /* in the end of lanes that are closed where these are, whatever has become of others */
    Mask failed = {0};
    Lanes last = splat(HUGE_VAL);
    for (int iteration = 0; iteration < CLOSING_ITERATIONS; iteration++) {
        find_closure(group, &closure);
        const Lanes size = closure.size;
        const Mask lost = open & closure.lost;
        failed |= lost;
        open &= ~lost & ~((size <= CLOSED) | ((size >= CLOSING_STAGNATION * last) & (size <= ACCEPTED)));
        if (!bits_of(open)) break;
        last = size;
        close_linearly(group, &closure, open);
    }
    reduce_lanes(group, closure.jacobian, closure.inverse);
    return failed | open;
#else
    (void)group;
    (void)open;
    return (Mask){0};
#endif
}
