/* An implicit step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38]. */

typedef struct {
    double guess[ROOM(UNKNOWNS)];
    double estimate[ROOM(COORDINATES)];
    int dependent[ROOM(COORDINATES)];
    int placed;
} Problem;

static const char *unknown_name(const Instance *instance, int unknown) {
    if (unknown >= FREEDOM) return state_names[unknown - FREEDOM];
    for (int j = 0; j < COORDINATES; j++) {
        if (!instance->state.dependent[j] && unknown-- == 0) return coordinate_names[j];
    }
    return "";
}

/* What the rule remembers of the independent coordinates and of the states. */
static void begin_history(const State *state, const Parts *parts) {
    if (HISTORY == 0) return;
    const double *from = state->history;
    double *to = parts->begin_history;
    *to++ = *from++;
    for (int k = 0; k < MOTION_HISTORY; k++) {
        for (int j = 0; j < COORDINATES; j++, from++) {
            if (!state->dependent[j]) *to++ = *from;
        }
    }
    COPY(to, from, STEP_HISTORY - 1 - MOTION_HISTORY * FREEDOM);
}

/* Set where the step begins, and predict its end. */
static void begin(Instance *instance, Problem *problem, double step) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    int k = 0;
    memcpy(problem->dependent, state->dependent, sizeof problem->dependent);
    for (int j = 0; j < COORDINATES; j++) {
        problem->estimate[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
        if (problem->dependent[j]) continue;
        parts->begin[k] = state->coordinates[j];
        parts->begin_rates[k] = state->velocities[j];
        parts->begin_accelerations[k] = state->accelerations[j];
        problem->guess[k++] = problem->estimate[j];
    }
    for (int i = 0; i < STATES; i++) {
        parts->begin[FREEDOM + i] = state->states[i];
        parts->begin_rates[FREEDOM + i] = state->rates[i];
        problem->guess[FREEDOM + i] = state->states[i] + step * state->rates[i];
    }
    begin_history(state, parts);
    *parts->step = step;
    problem->placed = 0;
}

/* (M'' z''_i - Q'', x' - f) [eq. 38]. */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    const Parts *parts = &instance->parts;
    double increments[ROOM(FREEDOM)] = {0.0};
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        if (!problem->dependent[j]) {
            increments[k] = unknowns[k] - problem->estimate[j];
            k++;
        }
    }
    for (int i = 0, k = 0; i < COORDINATES; i++) {
        if (!problem->dependent[i]) {
            problem->estimate[i] = unknowns[k++];
        } else if (problem->placed) { /* follow the iteration matrix: after small increments the loops are closed at once */
            double sum = 0.0;
            for (int c = 0; c < FREEDOM; c++) sum += parts->basis[i + COORDINATES * c] * increments[c];
            problem->estimate[i] += sum;
        }
    }
    if (!place(instance, problem->dependent, problem->estimate)) return 0;
    memcpy(problem->estimate, parts->coordinates, sizeof(double) * COORDINATES);
    problem->placed = 1;
    memcpy(parts->unknowns, unknowns, sizeof(double) * UNKNOWNS);
    reduced_residual(parts, residual);
    return 1;
}

static void iteration_matrix(Instance *instance, double *matrix) { reduced_iteration_matrix(&instance->parts, matrix); }

/* Bring the motion to the solution. */
static int land(Instance *instance, Problem *problem, const double *unknowns) {
    double residual[ROOM(UNKNOWNS)];
    return evaluate(instance, problem, unknowns, residual);
}

#if ERROR > 0
/* The residual where the loops are nearly closed by all coordinates, with a choice of them. */
static int evaluate_near(
    Instance *instance, const int *dependent, const double *coordinates, const double *unknowns, double *residual
) {
    if (!place_from(instance, dependent, coordinates, 1)) return 0;
    memcpy(instance->parts.unknowns, unknowns, sizeof(double) * UNKNOWNS);
    reduced_residual(&instance->parts, residual);
    return 1;
}
#endif

/* Choose other coordinates where the present ones get steep. */
static int finish(Instance *instance, Problem *problem) {
    int dependent[ROOM(COORDINATES)];
    if (needs_other_partition(instance, problem->dependent)) {
        if (!partition(instance, dependent)) return 0;
        if (memcmp(dependent, problem->dependent, sizeof(int) * COORDINATES) != 0) {
            memcpy(problem->dependent, dependent, sizeof(int) * COORDINATES);
        }
    }
    return 1;
}
