/* What users of a run should know: conditions that were met, and how large its error is. */

/* -- conditions, as an end stop that is reached; as mbsfmu/simulation/watches.py ------------------------------------ */

/* They are looked at where communication steps end. A host may take steps back if it has saved a state: what happened in
 * one is told where it says that it will not, or cannot, at the end of the run, or where a step fails. */

static double value_of(Instance *instance, const Variable *variable);

static int is_met(Instance *instance, const Condition *condition) {
    double sum = 0.0;
    for (int k = 0; k < condition->count; k++) {
        const Weight *weight = &weights[condition->first + k];
        const Variable variable = {.kind = weight->kind, .index = weight->index};
        sum += weight->factor * value_of(instance, &variable);
    }
    return sum > condition->bound;
}

/* Look at the state as the next point of the run. */
static void follow_conditions(Instance *instance) {
    State *state = &instance->state;
    if (CONDITIONS == 0) return;
    find_outputs(instance);
    for (int k = 0; k < CONDITIONS; k++) {
        if (!is_met(instance, &conditions[k])) continue;
        const int goes_on = state->has_held[k] && fabs(state->time - state->held_last[k]) <= APART;
        if (!goes_on && !state->happened[k]) {
            state->happened[k] = 1;
            state->happened_at[k] = state->time;
        }
        state->has_held[k] = 1;
        state->held_last[k] = state->time;
    }
}

/* Tell what happened on the way to the state, which will not be taken back. From a state that was saved after it, it is not
 * told again. */
static void report_conditions(Instance *instance) {
    State *state = &instance->state;
    for (int k = 0; k < CONDITIONS; k++) {
        if (!state->happened[k]) continue;
        state->happened[k] = 0;
        if (instance->is_told[k] && instance->told_at[k] == state->happened_at[k]) continue;
        instance->is_told[k] = 1;
        instance->told_at[k] = state->happened_at[k];
        const Condition *condition = &conditions[k];
        report(
            instance, condition->doubtful ? DONE_WITH_WARNING : NOTED, "%s: %s%.6g%s", SYSTEM_NAME, condition->before_time,
            state->happened_at[k], condition->after_time
        );
    }
}

static void begin_conditions(Instance *instance) {
    State *state = &instance->state;
    memset(state->has_held, 0, sizeof state->has_held);
    memset(state->happened, 0, sizeof state->happened);
    memset(instance->is_told, 0, sizeof instance->is_told);
    for (int k = 0; k < CONDITIONS; k++) state->held_last[k] = state->happened_at[k] = instance->told_at[k] = 0.0;
}

/* -- the largest error as a share of the range of its variable, as mbsfmu/integration/error_measure.py -------------- */

#if ERROR > 0

/* The greatest magnitude of a variable until now. */
static double magnitude_in(const double *record, int i) { return larger(fabs(record[AT_LOWEST + i]), fabs(record[AT_HIGHEST + i])); }

/* The range that the error of a variable is compared with: where it hardly varies, the size of what it is a component of, or
   what turning causes in its unit. */
static double compared_range(const double *record, const double *sizes, int i, double turned) {
    const double range = record[AT_HIGHEST + i] - record[AT_LOWEST + i];
    if (range >= VARIES * record[i]) return range;
    double scale = sizes[error_vectors[i]];
    if (squared_rates[i] >= 0) scale = larger(scale, sizes[squared_rates[i]] * sizes[squared_rates[i]]);
    const double compared = range < SMALL_RANGE * scale ? scale : range;
    return range < SMALL_CHANGE * turned ? larger(compared, turned) : compared;
}

/* Writes which variable it is of; NOT_KNOWN where it is not known. */
static double error_share(const State *state, int *worst) {
    const double *const record = state->error_record, *const lowest = record + AT_LOWEST, *const highest = record + AT_HIGHEST;
    double share = 0.0;
    *worst = 0;
#if MODEL_EXCHANGE
    if (state->exchanges) return NOT_KNOWN; /* steps are the host's */
#endif
    if (record[ERROR_RECORD - 1] != 0.0) return NOT_KNOWN;
    if (record[AT_COUNT] == 0.0) return 0.0;
    const double rounding = ROUNDING * 4.0 / (state->step_size * state->step_size) * sqrt(record[AT_COUNT]);
    double widest[ROOM(ERROR_GROUPS)] = {0.0}, greatest[ROOM(ERROR_GROUPS)] = {0.0};
    double sizes[ROOM(ERROR_VECTORS)] = {0.0}; /* the greatest magnitude of a component until now, of positions the widest range */
    for (int i = 0; i < RECORDED; i++) {
        const int group = error_groups[i], position = group >= 0 && measures_positions[group];
        const double range = highest[i] - lowest[i], magnitude = magnitude_in(record, i);
        sizes[error_vectors[i]] = larger(sizes[error_vectors[i]], position ? range : magnitude);
        if (group < 0) continue;
        widest[group] = larger(widest[group], range);
        greatest[group] = larger(greatest[group], magnitude);
    }
    for (int group = 0; group < ERROR_GROUPS; group++) {
        const int of = differences_of[group];
        double least = larger(larger(SMALL_RANGE * widest[group], SMALL_CHANGE * greatest[group]), least_ranges[group]);
        if (of >= 0) least = larger(least, rounding * greatest[of]);
        if (energies_of[group] >= 0) least = larger(least, SMALL_CHANGE * greatest[energies_of[group]]);
        const int by = turned_by[group], power = turn_powers[group];
        double turned = 0.0;
        if (by >= 0 && power > 0) {
            turned = turn_arms[group] * pow(greatest[by], power);
            least = larger(least, SMALL_CHANGE * turned);
        } else if (by >= 0) {
            least = larger(least, SMALL_RANGE * turn_arms[group] * smaller(widest[by], 1.0));
        }
        for (int i = 0; i < RECORDED; i++) {
            if (error_groups[i] != group) continue;
            const double own = record[i] / larger(compared_range(record, sizes, i, turned), least);
            if (own > share || (own == share && i < *worst)) {
                share = own;
                *worst = i;
            }
        }
    }
    return share;
}

/* Say so where the run that ends here is inaccurate. */
static void report_error_estimate(Instance *instance) {
    int worst;
    const double share = error_share(&instance->state, &worst);
    const double loss = instance->state.error_record[ERROR_RECORD - 1];
    if (loss != 0.0) {
        report(
            instance, DONE_WITH_WARNING, "%s: the error is not known: %s: " MORE_ACCURATE, SYSTEM_NAME, TOO_FAR
        );
    } else if (share > MEANINGLESS && share < NOT_KNOWN) {
        report(
            instance, DONE_WITH_WARNING, "%s: the error of %s is more than %.0f %% of its range: " MORE_ACCURATE, SYSTEM_NAME,
            error_names[worst], 100.0 * MEANINGLESS
        );
    } else if (share > LARGE_ERROR && share < NOT_KNOWN) {
        report(
            instance, DONE_WITH_WARNING,
            "%s: the error of %s is estimated at %.2g %% of its range, the largest of all variables: " MORE_ACCURATE,
            SYSTEM_NAME, error_names[worst], 100.0 * share
        );
    }
}

#else

static double error_share(const State *state, int *worst) {
    (void)state;
    *worst = 0;
    return NOT_KNOWN;
}

static void report_error_estimate(Instance *instance) {
    const State *state = &instance->state;
#if MODEL_EXCHANGE
    if (state->exchanges) return; /* steps are the host's */
#endif
    if (state->tolerance_factor * larger(RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE) > LOOSE_TOLERANCE) {
        report(instance, DONE_WITH_WARNING, "%s: %s: " MORE_ACCURATE, SYSTEM_NAME, LOOSE_NOTE);
    }
}

#endif
