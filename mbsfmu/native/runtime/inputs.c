/* Inputs over time: signals, values that were set, and their slopes. */

/* What jumps has the value that the events up to the state's `passed` have left, whatever the time: times inside a step
 * may miss the jump at its beginning or end by round-off. */
static double signal_value(const Signal *signal, double time, double passed) {
    int count = 0;
    const double *times = signal->times, *values = signal->values;
    if (signal->kind == SIGNAL_STEPS) {
        while (count < signal->count && times[count] <= passed) count++;
        return count ? values[count - 1] : signal->initial;
    }
    while (count < signal->count && times[count] <= time) count++;
    if (count == 0) return values[0];
    if (count == signal->count) return values[count - 1];
    const double slope = (values[count] - values[count - 1]) / (times[count] - times[count - 1]);
    return slope * (time - times[count - 1]) + values[count - 1];
}

static void inputs_at(const Instance *instance, double time, double *values) {
    const State *state = &instance->state;
    for (int i = 0; i < INPUTS; i++) values[i] = state->inputs[i] + state->slopes[i] * (time - state->slope_time);
    for (int k = 0; k < SIGNALS; k++) {
        if (!state->held[signals[k].input]) values[signals[k].input] = signal_value(&signals[k], time, state->passed);
    }
}

static double next_event(const Instance *instance, double begin, double end, double otherwise) {
    double next = otherwise;
    for (int k = 0; k < SIGNALS; k++) {
        if (instance->state.held[signals[k].input]) continue;
        for (int i = 0; i < signals[k].count; i++) {
            const double time = signals[k].times[i];
            if (time > begin && time < end && time < next) next = time;
        }
    }
    return next;
}
