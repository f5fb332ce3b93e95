/* What Newton's iteration asks of several machines at once in independent coordinates and states: as reduced_step.c and
 * newton_machine.c have it of one. lane_newton.h and lane_newton.c are made of mbsfmu/stepping/newton.py. Iteration matrices
 * are made for all lanes where one lane needs one. */

typedef struct {
    Lanes guess[ROOM(UNKNOWNS)];
    Lanes predicted[ROOM(COORDINATES)], estimate[ROOM(COORDINATES)];
    Mask taking_part;               /* lanes that have a step to make, and whose loops could be closed until now */
    int placed;
} Problem;

/* Set where the steps begin, and predict their ends; in some lanes perhaps for the second time. */
static void begin(Group *group, Problem *problem, Lanes step, Mask on) {
    const LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    COPY_LANES(parts->references, state->references, REFERENCES);
    COPY_LANES(parts->active, state->active, CONSTRAINTS);
    COPY_LANES(parts->integrals, state->integrals, INTEGRALS);
    for (int j = 0; j < COORDINATES; j++) {
        problem->predicted[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
        problem->estimate[j] = select_lanes(on, problem->predicted[j], problem->estimate[j]);
    }
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
    problem->taking_part |= on;
}

/* (M'' z''_i - Q'', x' - f) at the unknowns [eq. 38], in all lanes that take part: those that have converged follow. */
static Mask evaluate(Group *group, Problem *problem, const Lanes *unknowns, Lanes *residual, Mask on) {
    const LaneParts *parts = &group->parts;
    Lanes increments[ROOM(FREEDOM)], *const estimate = problem->estimate;
    for (int k = 0; k < FREEDOM; k++) {
        increments[k] = unknowns[k] - pick(group, estimate, group->independent[k]);
        put(group, estimate, group->independent[k], unknowns[k]);
    }
    for (int i = 0; problem->placed && i < RANK; i++) { /* follow the iteration matrix: the loops are then closed at once */
        Lanes sum = pick(group, estimate, group->dependent[i]);
        for (int c = 0; c < FREEDOM; c++) {
            sum += pick(group, parts->basis + COORDINATES * c, group->dependent[i]) * increments[c];
        }
        put(group, estimate, group->dependent[i], sum);
    }
    problem->taking_part &= ~place_lanes(group, estimate, problem->taking_part);
    COPY_LANES(estimate, parts->coordinates, COORDINATES);
    problem->placed = 1;
    COPY_LANES(parts->unknowns, unknowns, UNKNOWNS);
    lanes_reduced_residual(parts, residual);
    return on & problem->taking_part;
}

static Mask make_matrix(Group *group, Iteration *iteration, Mask on) {
    Mask pivots[ROOM(UNKNOWNS)];
    lanes_reduced_iteration_matrix(&group->parts, iteration->made);
    return on & ~invert_lanes(UNKNOWNS, iteration->made, pivots);
}

static void solve_matrix(Group *group, Iteration *iteration, Mask on) {
    (void)group;
    (void)on;
    multiply_lanes(UNKNOWNS, UNKNOWNS, iteration->inverse, iteration->residual, iteration->increment);
}

/* Begin with the iteration matrices of earlier steps, where they serve for these. */
static void reuse_iteration_matrix(Group *group, Lanes step, Iteration *iteration, Mask on) {
    const Lanes apart = lanes_fabs(step - group->matrix_step);
    iteration->made = iteration->inverse = group->inverse;
    iteration->rate = group->rate;
    iteration->own = !group->has_matrix || any(on & ~(apart <= SAME_STEP * group->matrix_step));
}

/* Keep the iteration matrices; none where new ones are due. */
static void store_iteration_matrix(Group *group, Lanes step, const Iteration *iteration) {
    group->rate = iteration->rate;
    if (iteration->iteration_matrices > 0) {
        group->has_matrix = 1;
        group->matrix_step = step;
        group->uses = 1.0;
        group->spent = iteration->spent;
    } else if (iteration->spent * group->uses > group->spent) {
        group->has_matrix = 0;
    } else {
        group->uses += 1.0;
        group->spent += iteration->spent;
    }
}
