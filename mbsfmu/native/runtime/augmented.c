/* An implicit step in all coordinates with penalty forces and projections [Jaiswal2021, eqs. 36 and 39]. */

typedef struct {
    double guess[ROOM(UNKNOWNS)];
    int dependent[ROOM(COORDINATES)];
} Problem;

static const char *unknown_name(const Instance *instance, int unknown) {
    (void)instance;
    return unknown < COORDINATES ? coordinate_names[unknown] : state_names[unknown - COORDINATES];
}

/* Set where the step begins, and predict its end. */
static void begin(Instance *instance, Problem *problem, double step) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    memcpy(problem->dependent, state->dependent, sizeof problem->dependent);
    for (int j = 0; j < COORDINATES; j++) {
        parts->begin[j] = state->coordinates[j];
        parts->begin_rates[j] = state->velocities[j];
        parts->begin_accelerations[j] = state->accelerations[j];
        problem->guess[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
    }
    for (int i = 0; i < STATES; i++) {
        parts->begin[COORDINATES + i] = state->states[i];
        parts->begin_rates[COORDINATES + i] = state->rates[i];
        problem->guess[COORDINATES + i] = state->states[i] + step * state->rates[i];
    }
    memcpy(parts->estimates, state->multipliers, sizeof(double) * CONSTRAINTS);
    COPY(parts->begin_history, state->history, STEP_HISTORY);
    *parts->step = step;
    *parts->moved = 0.0;
    set_penalty(instance);
}

/* (M' z'' + Phi_z^T (alpha Phi + lambda) - Q', x' - f) [eq. 39]. */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    (void)problem;
    memcpy(instance->parts.unknowns, unknowns, sizeof(double) * UNKNOWNS);
    augmented_residual(&instance->parts, residual);
    *instance->parts.moved = 0.0;
    return 1;
}

static void tangent(Instance *instance, double *matrix) { augmented_tangent(&instance->parts, matrix); }

/* Let alpha Phi be added to the multipliers in the next evaluation [eq. 19]. */
static void updated(Instance *instance) { *instance->parts.moved = 1.0; }

/* Bring positions, rates and multipliers to the solution. */
static int land(Instance *instance, Problem *problem, const double *unknowns) {
    (void)problem;
    memcpy(instance->parts.unknowns, unknowns, sizeof(double) * UNKNOWNS);
    augmented_landing(&instance->parts);
    return 1;
}
