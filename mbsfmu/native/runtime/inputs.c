/* Inputs over time: signals, values that were set, and their slopes. */

/* How many of some ascending times have come at a time. */
static int count_come(const double *times, int count, double time) {
    int come = 0;
    while (come < count) {
        const int middle = come + (count - come) / 2;
        if (times[middle] <= time) {
            come = middle + 1;
        } else {
            count = middle;
        }
    }
    return come;
}

/* What jumps has the value that the events up to the state's `passed` have left, whatever the time: times inside a step
 * may miss the jump at its beginning or end by round-off. */
static double signal_value(const Signal *signal, double time, double passed) {
    const double *times = signal->times, *values = signal->values;
    if (signal->kind == SIGNAL_STEPS) {
        const int come = count_come(times, signal->count, passed);
        return come ? values[come - 1] : signal->initial;
    }
    const int come = count_come(times, signal->count, time);
    if (come == 0) return values[0];
    if (come == signal->count) return values[come - 1];
    const double slope = (values[come] - values[come - 1]) / (times[come] - times[come - 1]);
    return slope * (time - times[come - 1]) + values[come - 1];
}

static void inputs_at(const Instance *instance, double time, double *values) {
    const State *state = &instance->state;
    for (int i = 0; i < INPUTS; i++) values[i] = state->inputs[i] + state->slopes[i] * (time - state->slope_time);
    for (int k = 0; k < instance->signal_count; k++) {
        const Signal *signal = &instance->signals[k];
        if (!state->held[signal->input]) values[signal->input] = signal_value(signal, time, state->passed);
    }
}

static double next_event(const Instance *instance, double begin, double end, double otherwise) {
    double next = otherwise;
    for (int k = 0; k < instance->signal_count; k++) {
        const Signal *signal = &instance->signals[k];
        if (instance->state.held[signal->input]) continue;
        const int come = count_come(signal->times, signal->count, begin);
        if (come < signal->count && signal->times[come] < end) next = smaller(next, signal->times[come]);
    }
    return next;
}
