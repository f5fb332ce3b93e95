/* The largest errors of a run until now, as mbsfmu/integration/error_measure.py: of coordinates, their rates and states at every
 * point that a run comes to, of outputs and reactions at some. */

#if ERROR > 0

enum {
    DIRECT = 3 * COORDINATES + STATES, RECORDED = DIRECT + OUTPUTS + REACTIONS,
    AT_LOWEST = RECORDED, AT_HIGHEST = 2 * RECORDED, AT_LOOKED = 3 * RECORDED, AT_COUNT = 3 * RECORDED + DIRECT
};

/* An error, and the bounds of the exact solution. */
static void note_error(double *record, int i, double error, double value) {
    const double exact = value - error;
    record[i] = larger(record[i], fabs(error));
    record[AT_LOWEST + i] = smaller(record[AT_LOWEST + i], exact);
    record[AT_HIGHEST + i] = larger(record[AT_HIGHEST + i], exact);
}

/* Outputs and reactions at the state. */
static void find_others(Instance *instance, double *values) {
    find_outputs(instance);
    find_reactions(instance);
    COPY(values, instance->outputs, OUTPUTS);
    COPY(values + OUTPUTS, instance->reactions, REACTIONS);
}

/* Compare outputs and reactions with those of the exact solution; the state stays as it is. */
static void compare_outputs(Instance *instance) {
    State *const state = &instance->state, *const before = &instance->waiting[BEFORE_COMPARISON];
    double values[ROOM(OUTPUTS + REACTIONS)], exact[ROOM(OUTPUTS + REACTIONS)];
    double *const record = state->error_record;
    const double *const error = state->error;
    find_others(instance, values);
    copy_but_iteration_matrix(before, state);
    for (int j = 0; j < COORDINATES; j++) {
        state->coordinates[j] -= error[j];
        state->velocities[j] -= error[COORDINATES + j];
#if HAMILTONIAN
        state->momenta[j] -= OF_MOMENTA(error)[j];
#endif
    }
    for (int i = 0; i < STATES; i++) state->states[i] -= error[3 * COORDINATES + i];
    fit(instance, 1);
    find_others(instance, exact);
    copy_but_iteration_matrix(state, before);
    instance->known = NOTHING;
    for (int i = 0; i < OUTPUTS + REACTIONS; i++) exact[i] = values[i] - exact[i];
    if (!all_within(exact, OUTPUTS + REACTIONS, FARTHEST)) {
        lose_error(state, LOST_UNSOLVED);
        return;
    }
    for (int i = 0; i < OUTPUTS + REACTIONS; i++) note_error(record, DIRECT + i, exact[i], values[i]);
}

/* Follow the error at a point that the run has come to. */
static void follow_error(Instance *instance) {
    State *state = &instance->state;
    double *const record = state->error_record, *const looked = record + AT_LOOKED;
    const double *const parts[] = {state->coordinates, state->velocities, state->accelerations, state->states};
    const double count = record[AT_COUNT] += 1.0;
    double apart = 1.0;
    if (count == 1.0) {
        for (int i = 0; i < RECORDED; i++) {
            record[AT_LOWEST + i] = HUGE_VAL;
            record[AT_HIGHEST + i] = -HUGE_VAL;
        }
    }
    while (apart < MOST_APART && apart * 2.0 * LOOKS <= count) apart *= 2.0;
    int due = fmod(count, apart) == 0.0;
    for (int i = 0; i < DIRECT; i++) {
        const double error = fabs(state->error[i]);
        const double value = i < 3 * COORDINATES ? parts[i / COORDINATES][i % COORDINATES] : parts[3][i - 3 * COORDINATES];
        note_error(record, i, state->error[i], value);
        due |= error > GROWN_ERROR * looked[i] && error > NOTICED * (record[AT_HIGHEST + i] - record[AT_LOWEST + i]);
    }
    if (!due) return;
    for (int i = 0; i < DIRECT; i++) looked[i] = larger(looked[i], fabs(state->error[i]));
    compare_outputs(instance);
}

#else

static void follow_error(Instance *instance) { (void)instance; }

#endif
