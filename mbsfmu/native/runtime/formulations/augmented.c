/* An implicit step in all coordinates with penalty forces and projections [Jaiswal2021, eqs. 36 and 39]. */

typedef struct {
    double guess[ROOM(ALL_UNKNOWNS)];
    int dependent[ROOM(COORDINATES)];
} Problem;

static const char *unknown_name(const Instance *instance, int unknown) {
    (void)instance;
    return unknown < COORDINATES ? coordinate_names[unknown] : state_names[unknown - COORDINATES];
}

/* How many times the penalty factor is too small where this share of a violation is left, of so much at most. */
static inline double stiffening(double left, double most) {
    const double factor = left / FIRM_SHARE / larger(1.0 - left, 1.0 / LARGEST_STIFFENING);
    return left > most && factor <= LARGEST_STIFFENING ? factor : 1.0;
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
    COPY(problem->guess + UNKNOWNS, state->multipliers, STEP_MULTIPLIERS);
    COPY(parts->begin_history, state->history, STEP_HISTORY);
    *parts->step = step;
}

static void take(const Parts *parts, const double *unknowns) {
    COPY(parts->unknowns, unknowns, UNKNOWNS);
    COPY(parts->multipliers, unknowns + UNKNOWNS, STEP_MULTIPLIERS);
}

/* (M' z'' + Phi_z^T lambda - Q', x' - f, Phi) [eq. 39]. */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    (void)problem;
    take(&instance->parts, unknowns);
    augmented_residual(&instance->parts, residual);
    return 1;
}

#include "all_coordinates.c"

#if FACTORS == 0
static void iteration_matrix(Instance *instance, double *matrix) {
    set_penalty(&instance->parts);
    augmented_iteration_matrix(&instance->parts, matrix);
}
#endif

/* Bring positions, rates and multipliers to the solution. */
static int land(Instance *instance, Problem *problem, const double *unknowns) {
    (void)problem;
    take(&instance->parts, unknowns);
    augmented_landing(&instance->parts);
    return 1;
}
