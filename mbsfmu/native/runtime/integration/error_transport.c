/* Transport of the error of implicit steps, as mbsfmu/integration/error_transport.py: the exact solution makes the same step
 * from where it is, with the local error as a defect; one iteration from a prediction solves it. */

#if ERROR > 0

#define MOVES (UNKNOWNS - STATES) /* unknowns that are coordinates or, in formulations of first order, their rates */

/* What the error of a step is found from, and the state at its end no longer has. */
typedef struct {
    double coordinates[ROOM(COORDINATES)], rates[ROOM(ERROR_RATES)];
    int dependent[ROOM(COORDINATES)];
} StepStart;

#if HAMILTONIAN
#define LATER_RATES momentum_rates
#else
#define LATER_RATES accelerations
#endif

/* A motion in its description. */
typedef struct {
    double coordinates[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)], accelerations[ROOM(COORDINATES)];
    double momenta[ROOM(COORDINATES)], references[ROOM(REFERENCES)];
} Motion;

/* z', z'' or p', and x' of a state. */
static void pack_error_rates(const State *state, double *rates) {
    COPY(rates, state->velocities, COORDINATES);
    COPY(rates + COORDINATES, state->LATER_RATES, COORDINATES);
    COPY(rates + 2 * COORDINATES, state->rates, STATES);
}

/* The defects of z, z' and x in a step from rates to those of the state; what is remembered of the rates goes on. Returns how
 * far changes go on. */
static double find_defects(State *state, const double *first, double step, double *defects) {
    double *const last = state->error_history, *const before = last + ERROR_RATES, *const second = before + ERROR_RATES;
    double *const mean_before = second + ERROR_RATES;
    double *const step_before = mean_before + ERROR_RATES + STEP_MULTIPLIERS, *const count = step_before + 1;
    const int jumps = *count == 0.0 || memcmp(first, last, sizeof(double) * ERROR_RATES) != 0;
    const int bends = *count > 0.0 && !(jumps && *count > 1.0);
    const double scale = DEFECT * (step * step * step), late = *count == 1.0 ? LATE : 0.0;
    const double onward = *count > 2.0 && !jumps ? smaller(1.0, step / *step_before) : 0.0;
    double ends[ROOM(ERROR_RATES)];
    pack_error_rates(state, ends);
    for (int i = 0; i < ERROR_RATES; i++) {
        const double slope = (ends[i] - first[i]) / step;
        const double bend = bends ? 2.0 * (slope - before[i]) / (step + *step_before) : 0.0;
        const double mean = 0.5 * (bend + second[i]);
        defects[i] = scale * (jumps ? bend : late > 0.0 ? late * bend : mean + onward * (mean - mean_before[i]));
        last[i] = ends[i];
        before[i] = slope;
        second[i] = bend;
        mean_before[i] = mean;
    }
    *step_before = step;
    *count = bends && !jumps ? smaller(3.0, *count + 1.0) : 1.0;
    return onward;
}

static void remember_begin(const State *state, StepStart *step_start) {
    COPY(step_start->coordinates, state->coordinates, COORDINATES);
    pack_error_rates(state, step_start->rates);
    memcpy(step_start->dependent, state->dependent, sizeof step_start->dependent);
}

#if SECOND_ORDER

/* Begin the step where the exact solution is, and predict where it ends: all coordinates, and those among the unknowns. */
static void begin_exact(
    Instance *instance, const StepStart *step_start, double step, const double *defects, double onward, double *coordinates,
    double *guess
) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    const double *error = state->error, *velocities = step_start->rates, *accelerations = step_start->rates + COORDINATES;
    for (int j = 0, k = 0; j < COORDINATES; j++) {
        const double position = step_start->coordinates[j] - OF_Z(error)[j] - defects[j];
        const double velocity = velocities[j] - OF_V(error)[j];
        const double acceleration = accelerations[j] - OF_A(error)[j] - 2.0 / step * defects[COORDINATES + j];
        const double pushed = acceleration + (state->accelerations[j] - OF_A(error)[j]);
        coordinates[j] = position + step * velocity + 0.25 * (step * step) * pushed;
        if (MOVES < COORDINATES && step_start->dependent[j]) continue;
        parts->begin[k] = position;
        parts->begin_rates[k] = velocity;
        parts->begin_accelerations[k] = acceleration;
        guess[k++] = coordinates[j];
    }
    for (int i = 0; i < STEP_MULTIPLIERS; i++) {
        const double of_later = OF_MULTIPLIERS(error)[i] + onward * CHANGES_OF(state->error_history)[i];
        guess[UNKNOWNS + i] = state->multipliers[i] - of_later;
    }
}

/* Project what the arguments have, by an iteration matrix: the next step's multipliers balance what this corrects in rates. */
static inline void project_exact(Instance *instance) {
#if STEP_MULTIPLIERS > 0
    const Parts *parts = &instance->parts;
    double *const levels[] = {parts->coordinates, parts->velocities, parts->accelerations};
    double open[3 * STEP_MULTIPLIERS], right[ALL_UNKNOWNS] = {0.0}, increment[ALL_UNKNOWNS];
    loop_motion(parts, open);
    for (int level = 0; level < 3; level++) {
        COPY(right + UNKNOWNS, open + STEP_MULTIPLIERS * level, STEP_MULTIPLIERS);
        solve_iteration_matrix(instance, instance->state.iteration_matrix, right, increment);
        for (int j = 0; j < COORDINATES; j++) levels[level][j] -= increment[j];
    }
#else
    (void)instance;
#endif
}

/* Find the error where the step ends: the arguments are where it was predicted to, from which an increment leads. */
static void end_exact(Instance *instance, double step, const double *guess, const double *increment) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double *error = state->error;
    for (int j = 0; j < COORDINATES; j++) {
        double moved = MOVES == COORDINATES ? increment[j] : 0.0;
        for (int c = 0; MOVES < COORDINATES && c < MOVES; c++) moved += parts->basis[j + COORDINATES * c] * increment[c];
        parts->coordinates[j] -= moved;
        parts->velocities[j] -= 2.0 / step * moved;
        parts->accelerations[j] -= 4.0 / (step * step) * moved;
    }
    for (int i = 0; i < STATES; i++) parts->states[i] -= increment[MOVES + i];
    project_exact(instance);
    for (int j = 0; j < COORDINATES; j++) {
        OF_Z(error)[j] = state->coordinates[j] - parts->coordinates[j];
        OF_V(error)[j] = state->velocities[j] - parts->velocities[j];
        OF_A(error)[j] = state->accelerations[j] - parts->accelerations[j];
    }
    for (int i = 0; i < STATES; i++) {
        OF_X(error)[i] = state->states[i] - parts->states[i];
        OF_RATES(error)[i] = state->rates[i] - (parts->rates[i] - 2.0 / step * increment[MOVES + i]);
    }
    for (int i = UNKNOWNS; i < ALL_UNKNOWNS; i++) {
        OF_MULTIPLIERS(error)[i - UNKNOWNS] = state->multipliers[i - UNKNOWNS] - (guess[i] - increment[i]);
    }
}

#else

static void begin_exact(
    Instance *instance, const StepStart *step_start, double step, const double *defects, double onward, double *coordinates,
    double *guess
) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    const double *error = state->error;
    (void)step_start, (void)coordinates, (void)onward;
    const double *const of_moving = HAMILTONIAN ? OF_MOMENTA(error) : OF_V(error);
    const double *const of_moving_rates = HAMILTONIAN ? OF_MOMENTA(error) + COORDINATES : OF_A(error);
    for (int i = 0; i < MOVES; i++) {
        const int j = i % COORDINATES, moving = i >= COORDINATES;
        const double of_rate = (moving ? of_moving_rates : OF_V(error))[j];
        const double later = (moving ? state->LATER_RATES : state->velocities)[j] - of_rate;
        parts->begin[i] -= (moving ? of_moving : OF_Z(error))[j] + defects[i];
        parts->begin_rates[i] -= of_rate;
        guess[i] = parts->begin[i] + 0.5 * step * (parts->begin_rates[i] + later);
    }
}

static void end_exact(Instance *instance, double step, const double *guess, const double *increment) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double *error = state->error, exact[ROOM(UNKNOWNS)], slopes[ROOM(UNKNOWNS)];
    for (int i = 0; i < UNKNOWNS; i++) {
        exact[i] = guess[i] - increment[i];
        slopes[i] = 2.0 / step * (exact[i] - parts->begin[i]) - parts->begin_rates[i];
    }
    for (int j = 0; j < COORDINATES; j++) {
        OF_Z(error)[j] = state->coordinates[j] - exact[j];
#if HAMILTONIAN
        /* Accelerations are no rates of the step: their error is the mean slope of that of velocities. */
        const double of_velocity = state->velocities[j] - slopes[j];
        OF_A(error)[j] = (of_velocity - OF_V(error)[j]) / step;
        OF_V(error)[j] = of_velocity;
        OF_MOMENTA(error)[j] = state->momenta[j] - exact[COORDINATES + j];
        OF_MOMENTA(error)[COORDINATES + j] = state->momentum_rates[j] - slopes[COORDINATES + j];
#else
        OF_V(error)[j] = state->velocities[j] - exact[COORDINATES + j];
        OF_A(error)[j] = state->accelerations[j] - slopes[COORDINATES + j];
#endif
    }
    for (int i = 0; i < STATES; i++) {
        OF_X(error)[i] = state->states[i] - exact[MOVES + i];
        OF_RATES(error)[i] = state->rates[i] - slopes[MOVES + i];
    }
}

#endif

/* Carry the error along a step that has led to the state. */
static void carry_error(Instance *instance, double step, const StepStart *step_start) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double defects[ROOM(ERROR_RATES)], guess[ROOM(ALL_UNKNOWNS)], residual[ROOM(ALL_UNKNOWNS)];
    double increment[ROOM(ALL_UNKNOWNS)];
    double before[ERROR], coordinates[ROOM(COORDINATES)];
    if (state->error_record[ERROR_RECORD - 1] != 0.0) return;
    COPY(before, state->error, ERROR);
    const double onward = find_defects(state, step_start->rates, step, defects);
    begin_exact(instance, step_start, step, defects, onward, coordinates, guess);
    for (int i = 0; i < STATES; i++) {
        const int k = MOVES + i;
        const double of_rate = OF_RATES(state->error)[i];
        parts->begin[k] -= OF_X(state->error)[i] + defects[2 * COORDINATES + i];
        parts->begin_rates[k] -= of_rate;
        guess[k] = parts->begin[k] + 0.5 * step * (parts->begin_rates[k] + (state->rates[i] - of_rate));
    }
    if (evaluate_near(instance, step_start->dependent, coordinates, guess, residual)) {
        solve_iteration_matrix(instance, state->iteration_matrix, residual, increment);
        end_exact(instance, step, guess, increment);
        if (all_within(state->error, ERROR, FARTHEST)) {
            for (int i = 0; i < STEP_MULTIPLIERS; i++) {
                const double change = OF_MULTIPLIERS(state->error)[i] - OF_MULTIPLIERS(before)[i];
                double *const mean = CHANGES_OF(state->error_history) + i;
                *mean = RECENT * change + (1.0 - RECENT) * (onward * *mean);
            }
            return;
        }
    }
    COPY(state->error, before, ERROR);
    lose_error(state, LOST_UNSOLVED);
}

/* The error of the same motion in another description: references, restarted momenta. */
static void describe_error(Instance *instance, const Motion *before) {
    State *state = &instance->state;
    Parts *parts = &instance->parts;
    double *const error = state->error;
    const int turned = memcmp(before->references, state->references, sizeof(double) * REFERENCES) != 0;
    const int restarted = HAMILTONIAN && memcmp(before->momenta, state->momenta, sizeof(double) * COORDINATES) != 0;
    if (state->error_record[ERROR_RECORD - 1] != 0.0 || !(turned || restarted)) return;
    double exact[4][ROOM(COORDINATES)];
    for (int j = 0; j < COORDINATES; j++) {
        exact[0][j] = before->coordinates[j] - OF_Z(error)[j];
        exact[1][j] = before->velocities[j] - OF_V(error)[j];
        exact[2][j] = before->accelerations[j] - OF_A(error)[j];
        exact[3][j] = before->momenta[j] - (HAMILTONIAN ? OF_MOMENTA(error)[j] : 0.0);
    }
#if REFERENCES > 0
    if (turned) {
        COPY(parts->coordinates, exact[0], COORDINATES);
        COPY(parts->velocities, exact[1], COORDINATES);
        COPY(parts->accelerations, exact[2], COORDINATES);
        COPY(parts->momenta, exact[3], COORDINATES);
        COPY(parts->references, before->references, REFERENCES);
        COPY(parts->new_references, state->references, REFERENCES);
        with_references(parts, exact[0], exact[1], exact[2], exact[3]);
        memset(state->error_history, 0, sizeof state->error_history);
    }
#endif
    COPY(parts->references, state->references, REFERENCES);
#if HAMILTONIAN
    restart_as_state(instance, exact[0], exact[1], exact[3]);
#endif
    for (int j = 0; j < COORDINATES; j++) {
        OF_Z(error)[j] = state->coordinates[j] - exact[0][j];
        OF_V(error)[j] = state->velocities[j] - exact[1][j];
        OF_A(error)[j] = state->accelerations[j] - exact[2][j];
#if HAMILTONIAN
        OF_MOMENTA(error)[j] = state->momenta[j] - exact[3][j];
#endif
    }
}

#endif

/* Describe the state as the next step needs it; its error stays that of the same motion. */
static void describe_anew(Instance *instance) {
#if ERROR > 0
    const State *state = &instance->state;
    Motion before;
    COPY(before.coordinates, state->coordinates, COORDINATES);
    COPY(before.velocities, state->velocities, COORDINATES);
    COPY(before.accelerations, state->accelerations, COORDINATES);
    COPY(before.momenta, state->momenta, COORDINATES);
    COPY(before.references, state->references, REFERENCES);
    change_chart(instance);
    describe_error(instance, &before);
#else
    change_chart(instance);
#endif
}
