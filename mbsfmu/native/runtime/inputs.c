/* Inputs over time: signals, values that were set, and their slopes. */

static double signal_value(const Signal *signal, double time, Side side) {
    int passed = 0;
    const double *times = signal->times, *values = signal->values;
    if (signal->kind == SIGNAL_STEPS) {
        while (passed < signal->count && (times[passed] < time || (side == AFTER && times[passed] == time))) passed++;
        return passed ? values[passed - 1] : signal->initial;
    }
    while (passed < signal->count && times[passed] <= time) passed++;
    if (passed == 0) return values[0];
    if (passed == signal->count) return values[passed - 1];
    const double slope = (values[passed] - values[passed - 1]) / (times[passed] - times[passed - 1]);
    return slope * (time - times[passed - 1]) + values[passed - 1];
}

static void inputs_at(const Instance *instance, double time, Side side, double *values) {
    const State *state = &instance->state;
    for (int i = 0; i < INPUTS; i++) values[i] = state->inputs[i] + state->slopes[i] * (time - state->slope_time);
    for (int k = 0; k < SIGNALS; k++) {
        if (!state->held[signals[k].input]) values[signals[k].input] = signal_value(&signals[k], time, side);
    }
}

static double next_event(const Instance *instance, double begin, double end, double same) {
    double next = end;
    for (int k = 0; k < SIGNALS; k++) {
        if (instance->state.held[signals[k].input]) continue;
        for (int i = 0; i < signals[k].count; i++) {
            const double time = signals[k].times[i];
            if (time > begin + same && time < end - same && time < next) next = time;
        }
    }
    return next;
}
