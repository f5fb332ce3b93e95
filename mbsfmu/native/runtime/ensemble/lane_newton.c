/* An implicit step of several machines at once in independent coordinates and states: as reduced_step.c and newton.c have
 * it of one, each lane with its own convergence. Iteration matrices are made for all lanes where one lane needs
 * one; what is accepted is decided by lane. */

typedef struct {
    Lanes step;
    Lanes guess[ROOM(UNKNOWNS)], unknowns[ROOM(UNKNOWNS)], residual[ROOM(UNKNOWNS)], increment[ROOM(UNKNOWNS)];
    Lanes predicted[ROOM(COORDINATES)], estimate[ROOM(COORDINATES)];
    Mask failed;                    /* lanes whose step must be made otherwise */
    Lanes weight;                   /* of errors of coordinates */
    Lanes increments;               /* how many were made in each lane */
    int matrices;                   /* iteration matrices that were made */
    int placed;
} LaneStep;

/* Set where the steps begin, and predict their ends. */
static void begin_lanes(const Group *group, LaneStep *problem) {
    const LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    const Lanes step = problem->step;
    COPY_LANES(parts->references, state->references, REFERENCES);
    COPY_LANES(parts->active, state->active, CONSTRAINTS);
    COPY_LANES(parts->integrals, state->integrals, INTEGRALS);
    for (int j = 0; j < COORDINATES; j++) {
        problem->predicted[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
    }
    COPY_LANES(problem->estimate, problem->predicted, COORDINATES);
    for (int k = 0; k < FREEDOM; k++) {
        parts->begin[k] = pick(group, state->coordinates, group->independent[k]);
        parts->begin_rates[k] = pick(group, state->velocities, group->independent[k]);
        parts->begin_accelerations[k] = pick(group, state->accelerations, group->independent[k]);
        problem->guess[k] = pick(group, problem->predicted, group->independent[k]);
    }
    for (int i = 0; i < STATES; i++) {
        parts->begin[FREEDOM + i] = state->states[i];
        parts->begin_rates[FREEDOM + i] = state->rates[i];
        problem->guess[FREEDOM + i] = state->states[i] + step * state->rates[i];
    }
    *parts->step = step;
    problem->placed = 0;
    problem->failed = (Mask){0};
    COPY_LANES(problem->unknowns, problem->guess, UNKNOWNS);
}

/* (M'' z''_i - Q'', x' - f) at the unknowns [eq. 38], in lanes that count. */
static void evaluate_lanes(const Group *group, LaneStep *problem, Mask active) {
    const LaneParts *parts = &group->parts;
    Lanes increments[ROOM(FREEDOM)], *const estimate = problem->estimate;
    for (int k = 0; k < FREEDOM; k++) {
        increments[k] = problem->unknowns[k] - pick(group, estimate, group->independent[k]);
        put(group, estimate, group->independent[k], problem->unknowns[k]);
    }
    for (int i = 0; problem->placed && i < RANK; i++) { /* follow the iteration matrix: the loops are then closed at once */
        Lanes sum = pick(group, estimate, group->dependent[i]);
        for (int c = 0; c < FREEDOM; c++) {
            sum += pick(group, parts->basis + COORDINATES * c, group->dependent[i]) * increments[c];
        }
        put(group, estimate, group->dependent[i], sum);
    }
    problem->failed |= place_lanes(group, estimate, active);
    COPY_LANES(estimate, parts->coordinates, COORDINATES);
    problem->placed = 1;
    COPY_LANES(parts->unknowns, problem->unknowns, UNKNOWNS);
    lanes_reduced_residual(parts, problem->residual);
}

/* -- the iteration ----------------------------------------------------------------------------------------------- */

static inline Lanes magnitude_in_lanes(const LaneStep *problem, int i) {
    return lanes_larger(splat(unknown_nominals[i]), lanes_fabs(problem->unknowns[i]));
}

static inline Lanes share_in_lanes(const LaneStep *problem, int i) {
    return lanes_fabs(problem->increment[i]) / (unknown_tolerances[i] * magnitude_in_lanes(problem, i));
}

/* Weigh errors of coordinates by their first increments, but at rest. */
static void weigh_errors_in_lanes(const LaneState *state, LaneStep *problem) {
    Lanes own = {0};
    Mask moves = {0};
    for (int j = 0; j < COORDINATES; j++) {
        const Lanes magnitude = lanes_larger(splat(1.0), lanes_fabs(state->coordinates[j]));
        moves |= problem->step * lanes_fabs(state->velocities[j]) > STILL * magnitude;
    }
    for (int i = 0; i < UNKNOWNS - STATES; i++) own = lanes_larger(share_in_lanes(problem, i), own);
    const Mask heaviest = own * HEAVIEST < splat(SMALL_FIRST);
    const Lanes heavy = select_lanes(heaviest, splat(HEAVIEST), lanes_larger(splat(1.0), SMALL_FIRST / own));
    problem->weight = select_lanes(moves, heavy, splat(1.0));
}

/* The largest part of the increment by its tolerance, not finite where one is not; writes what counts of it. */
static Lanes size_in_lanes(const LaneStep *problem, Lanes *counted) {
    Lanes size = {0};
    *counted = (Lanes){0};
    for (int i = 0; i < UNKNOWNS; i++) {
        const Lanes share = share_in_lanes(problem, i);
        size = select_lanes(share <= size, size, share);
        *counted = lanes_larger(i < UNKNOWNS - STATES ? problem->weight * share : LIGHT * share, *counted);
    }
    return size;
}

/* Where increments no longer shrink, and by how little. */
static Mask round_off_in_lanes(const Group *group, const LaneStep *problem, Lanes rate, int count, int matrices) {
    Mask stays = rate > splat(matrices > 0 ? STAGNATING : SLOW);
    if (!bits_of(stays)) return stays;
    const Mask fast = count > 1 ? group->rate < FAST : (Mask){0};
    const Lanes share = matrices > 0 ? splat(ROUNDED) : select_lanes(fast, splat(ROUNDED), splat(FLOOR));
    for (int i = 0; i < UNKNOWNS; i++) stays &= lanes_fabs(problem->increment[i]) <= share * magnitude_in_lanes(problem, i);
    return stays;
}

/* How far solutions are still off behind an increment, by the tolerances. */
static inline Lanes left_in_lanes(const Group *group, Lanes counted) {
    const Lanes rate = group->rate;
    return select_lanes(rate < splat(1.0), rate / (1.0 - rate) * counted, splat(HUGE_VAL));
}

/* Where to go on with the present iteration matrix takes longer than with a new one. */
static Mask exceeds_in_lanes(const Group *group, Lanes rate, Lanes size, Lanes counted, int count) {
    const Mask first = count == 1 ? (size <= splat(1.0)) & (rate < splat(1.0)) : (Mask){0};
    Lanes left = left_in_lanes(group, counted);
    for (int evaluation = 1; evaluation <= (int)(REFRESH_COST + FRESH); evaluation++) left *= group->rate;
    return ~first & ((group->rate >= splat(SLOW)) | (left > splat(REMAINING)));
}

/* Make the iteration matrices where the iteration is. */
static void refresh_lanes(Group *group, LaneStep *problem) {
    Mask pivots[ROOM(UNKNOWNS)];
    lanes_reduced_iteration_matrix(&group->parts, group->inverse);
    problem->failed |= invert_lanes(UNKNOWNS, group->inverse, pivots);
    group->rate = (Lanes){0};
}

/* Whether the iteration matrices of earlier steps serve for these. */
static int matrix_serves(const Group *group, Lanes step, Mask active) {
    const Lanes apart = lanes_fabs(step - group->matrix_step);
    return group->has_matrix && !bits_of(active & ~(apart <= SAME_STEP * group->matrix_step));
}

/* Keep the iteration matrices; none where new ones are due. */
static void keep_matrix(Group *group, Lanes step, double spent, int matrices) {
    if (matrices > 0) {
        group->has_matrix = 1;
        group->matrix_step = step;
        group->uses = 1.0;
        group->spent = spent;
    } else if (spent * group->uses > group->spent) {
        group->has_matrix = 0;
    } else {
        group->uses += 1.0;
        group->spent += spent;
    }
}

/* Iterate from the guesses to the solutions, at which the residual is evaluated then; lanes that fail are marked. */
static void newton_in_lanes(Group *group, LaneStep *problem, Mask active) {
    Mask live = active;
    Lanes before = splat(HUGE_VAL), counted;
    int count = 0, matrices = 0, evaluations = 1, own = !matrix_serves(group, problem->step, active);
    begin_lanes(group, problem);
    problem->increments = (Lanes){0};
    evaluate_lanes(group, problem, active);
    if (own) {
        refresh_lanes(group, problem);
        matrices++;
    }
    for (;;) {
        multiply_lanes(UNKNOWNS, UNKNOWNS, group->inverse, problem->residual, problem->increment);
        if (count == 0) weigh_errors_in_lanes(&group->state, problem);
        const Lanes size = size_in_lanes(problem, &counted), rate = size / before;
        problem->failed |= live & ~(size - size == (Lanes){0});
        live &= ~problem->failed & ~(counted <= splat(REMAINING));
        if (!bits_of(live)) break;
        const Mask ends = live & round_off_in_lanes(group, problem, rate, count, matrices);
        const Mask chord = own ? (Mask){0} : live & (before < splat(HUGE_VAL)) & ~ends;
        if (bits_of(chord)) {
            group->rate = select_lanes(chord, lanes_larger(rate, FADING * group->rate), group->rate);
            const Mask slow = chord & exceeds_in_lanes(group, rate, size, counted, count);
            if (bits_of(slow) && matrices >= NEWTON_ITERATIONS) {
                problem->failed |= slow;
                live &= ~slow;
                continue;
            }
            if (bits_of(slow)) {
                if (matrices == 0 && bits_of(slow & (rate >= splat(1.0)))) { /* begin again */
                    for (int i = 0; i < UNKNOWNS; i++) {
                        problem->unknowns[i] = select_lanes(live, problem->guess[i], problem->unknowns[i]);
                    }
                    for (int j = 0; j < COORDINATES; j++) {
                        problem->estimate[j] = select_lanes(live, problem->predicted[j], problem->estimate[j]);
                    }
                    evaluate_lanes(group, problem, active & ~problem->failed);
                    evaluations++;
                    before = splat(HUGE_VAL);
                    count = 0;
                }
                refresh_lanes(group, problem);
                matrices++;
                own = 1;
                continue;
            }
        }
        for (int i = 0; i < UNKNOWNS; i++) {
            problem->unknowns[i] -= (Lanes)(live & (Mask)problem->increment[i]);
        }
        problem->increments += truth(live);
        count++;
        Mask done = ends;
        done |= own ? size <= splat(1.0) : chord & (left_in_lanes(group, counted) <= splat(REMAINING));
        live &= ~done;
        before = size;
        own = 0;
        evaluate_lanes(group, problem, active & ~problem->failed);
        evaluations++;
        live &= ~problem->failed;
        if (!bits_of(live)) break;
    }
    problem->matrices = matrices;
    keep_matrix(group, problem->step, evaluations + REFRESH_COST * matrices, matrices);
}
