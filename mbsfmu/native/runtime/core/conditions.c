/* Conditions that users of a run should know of, as an end stop that is reached; as mbsfmu/simulation/watches.py. They are
 * looked at where communication steps end. A host may take steps back if it has saved a state: what happened in one is told
 * where it says that it will not, or cannot, at the end of the run, or where a step fails. */

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
