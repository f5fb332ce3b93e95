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

/* The coefficients of the piece of a polynomial that counts, and the time since it began. */
static const double *piece_of(const Signal *signal, double time, double passed, double *since) {
    const int come = count_come(signal->times, signal->count, passed), chosen = come ? come - 1 : 0;
    *since = time - signal->times[chosen];
    return signal->values + (DEGREE + 1) * chosen;
}

/* What jumps has the value that the events up to the state's `passed` have left, whatever the time: times inside a step
 * may miss the jump at its beginning or end by round-off. */
static double signal_value(const Signal *signal, double time, double passed) {
    const double *times = signal->times, *values = signal->values;
    if (signal->kind == SIGNAL_STEPS) {
        const int come = count_come(times, signal->count, passed);
        return come ? values[come - 1] : signal->initial;
    }
    if (signal->kind == SIGNAL_POLYNOMIAL) {
        double value = 0.0, since;
        const double *piece = piece_of(signal, time, passed, &since);
        for (int power = DEGREE; power >= 0; power--) value = value * since + piece[power];
        return value;
    }
    if (signal->kind == SIGNAL_SINE) {
        const int come = count_come(times, signal->count, passed);
        const double elapsed = (come == 1 ? time : times[come ? signal->count - 1 : 0]) - times[0];
        return values[0] + values[1] * sin(values[2] + elapsed * (values[3] + values[4] * elapsed));
    }
    const int come = count_come(times, signal->count, time);
    if (come == 0) return values[0];
    if (come == signal->count) return values[come - 1];
    const double slope = (values[come] - values[come - 1]) / (times[come] - times[come - 1]);
    return slope * (time - times[come - 1]) + values[come - 1];
}

#if SOLVER == ROSENBROCK

/* The derivative of a signal by time. */
static double signal_slope(const Signal *signal, double time, double passed) {
    const double *times = signal->times, *values = signal->values;
    const int come = count_come(times, signal->count, passed);
    if (signal->kind == SIGNAL_SINE) {
        if (come != 1) return 0.0;
        const double elapsed = time - times[0];
        const double rate = values[3] + 2.0 * values[4] * elapsed;
        return values[1] * rate * cos(values[2] + elapsed * (values[3] + values[4] * elapsed));
    }
    if (signal->kind == SIGNAL_POLYNOMIAL) {
        double slope = 0.0, since;
        const double *piece = piece_of(signal, time, passed, &since);
        for (int power = DEGREE; power >= 1; power--) slope = slope * since + power * piece[power];
        return slope;
    }
    if (signal->kind == SIGNAL_STEPS || come == 0 || come == signal->count) return 0.0;
    return (values[come] - values[come - 1]) / (times[come] - times[come - 1]);
}

#endif

/* Inputs that were set, some time after: by their slopes where these are known, else what has a rate by it and by the rate
 * of this. */
static void run_on(const State *state, double passed, double *values) {
    for (int i = 0; i < INPUTS; i++) {
        double slope = state->slopes[i];
        if (rated[i] && slope == 0.0) slope = state->inputs[i + 1] + (rated[i + 1] ? 0.5 * passed * state->inputs[i + 2] : 0.0);
        values[i] = state->inputs[i] + slope * passed;
    }
}

static void inputs_at(const Instance *instance, double time, double *values) {
    const State *state = &instance->state;
    run_on(state, time - state->slope_time, values);
    for (int k = 0; k < instance->signal_count; k++) {
        const Signal *signal = &instance->signals[k];
        if (!state->held[signal->input]) values[signal->input] = signal_value(signal, time, state->passed);
    }
}

#if SOLVER == ROSENBROCK

/* The derivatives of the inputs by time. */
static void input_slopes_at(const Instance *instance, double time, double *slopes) {
    const State *state = &instance->state;
    for (int i = 0; i < INPUTS; i++) slopes[i] = state->slopes[i];
    for (int k = 0; k < instance->signal_count; k++) {
        const Signal *signal = &instance->signals[k];
        if (!state->held[signal->input]) slopes[signal->input] = signal_slope(signal, time, state->passed);
    }
}

#endif

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
