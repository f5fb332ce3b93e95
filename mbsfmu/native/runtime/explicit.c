/* Explicit Runge-Kutta methods; y ends with the integrals. */


/* Every stage of an explicit method from the lower triangle of its tableau; stages[0] may be there already. */
static int evaluate_stages(
    Instance *instance, double time, double step, const double *y, int count, const double *nodes,
    const double *weights, double stages[][ROOM(SIZE)]
) {
    double trial[ROOM(SIZE)];
    for (int stage = 0; stage < count; stage++) {
        for (int i = 0; i < SIZE; i++) {
            double sum = 0.0;
            for (int k = 0; k < stage; k++) sum += weights[stage * (stage - 1) / 2 + k] * stages[k][i];
            trial[i] = y[i] + step * sum;
        }
        instance->state.evaluations += 1.0;
        if (!rates_of(instance, time + nodes[stage] * step, trial, stages[stage])) return 0;
    }
    return 1;
}

#if SOLVER == RK4

/* The largest distance between the methods of order four and three over a step that was taken, h/6 (k4 - k5), by the
 * magnitude of what differs; integrals apart. Weight that is moved from k4 to the rates at the end leaves the conditions
 * of order three as they are. */
static double estimate(const State *state, double step, const double *y, const double *fourth) {
    double end_rates[ROOM(SIZE)], most = 0.0;
    pack_rates(state, end_rates);
    for (int i = 0; i < SIZE - INTEGRALS; i++) {
        const double difference = step / 6.0 * (fourth[i] - end_rates[i]);
        most = larger(most, fabs(difference) / larger(fabs(y[i]), explicit_scales[i]));
    }
    return most;
}

/* One step of the classical method of order four. */
static int attempt(Instance *instance, double time, double step) {
    static const double nodes[] = {0.0, 0.5, 0.5, 1.0};
    static const double weights[] = {0.5, 0.0, 0.5, 0.0, 0.0, 1.0};
    State *state = &instance->state;
    double y[ROOM(SIZE)], k[4][ROOM(SIZE)];
    pack(state, y);
    if (!evaluate_stages(instance, time, step, y, 4, nodes, weights, k)) return 0;
    for (int i = 0; i < SIZE; i++) y[i] += step / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    if (!commit(instance, time + step, step, y)) return 0;
    state->error_estimate += estimate(state, step, y, k[3]);
    return describe(instance) ? 1 : -1;
}

static int advance(Instance *instance, double begin_time, double end) {
    return advance_equally(instance, begin_time, end, attempt, " of rk4");
}

#else

/* Dormand and Prince, order five with an error estimate of order four (J. Comput. Appl. Math. 6, 1980). */
static const double dormand_nodes[] = {0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0};
static const double dormand_weights[] = {
    1.0 / 5.0,
    3.0 / 40.0, 9.0 / 40.0,
    44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0,
    19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0,
    9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0,
    35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0,
};
static const double dormand_errors[] = {
    -71.0 / 57600.0, 0.0, 71.0 / 16695.0, -71.0 / 1920.0, 17253.0 / 339200.0, -22.0 / 525.0, 1.0 / 40.0,
};

/* Root mean square of the error by its tolerance, which `factor` scales; above one the step is refused. */
static double error_of(double factor, double step, const double *y, const double *end, double k[][ROOM(SIZE)]) {
    double sum = 0.0;
    for (int i = 0; i < SIZE; i++) {
        double error = 0.0;
        for (int stage = 0; stage < 7; stage++) error += dormand_errors[stage] * k[stage][i];
        const double largest = fmax(fabs(y[i]), fabs(end[i]));
        const double scale = factor * (ABSOLUTE_TOLERANCE * explicit_scales[i] + RELATIVE_TOLERANCE * largest);
        sum += (step * error / scale) * (step * error / scale);
    }
    return sqrt(sum / ROOM(SIZE));
}

/* Steps as large as the tolerance allows; the last ends where the interval ends. */
static int advance(Instance *instance, double begin_time, double end) {
    State *state = &instance->state;
    double y[ROOM(SIZE)], next[ROOM(SIZE)], k[7][ROOM(SIZE)];
    /* Counted from the beginning of the interval: where time is late, short steps would be lost in its resolution. */
    const double whole = end - begin_time;
    double elapsed = 0.0;
    if (!(*state->suggested_step > 0.0)) *state->suggested_step = 1e-3 * whole;
    while (elapsed < whole) {
        const double time = begin_time + elapsed;
        const int last = elapsed + *state->suggested_step * (1.0 + SAME_TIME) >= whole;
        const double step = last ? whole - elapsed : *state->suggested_step;
        double error = HUGE_VAL;
        pack(state, y);
        *instance->reason = '\0';
        if (evaluate_stages(instance, time, step, y, 7, dormand_nodes, dormand_weights, k)) {
            for (int i = 0; i < SIZE; i++) {
                double sum = 0.0;
                for (int stage = 0; stage < 6; stage++) sum += dormand_weights[15 + stage] * k[stage][i];
                next[i] = y[i] + step * sum;
            }
            error = error_of(state->tolerance_factor, step, y, next, k);
        }
        if (error <= 1.0 && !commit(instance, last ? end : time + step, step, next)) error = HUGE_VAL;
        const double factor = error > 0.0 ? fmin(10.0, fmax(0.2, 0.9 * pow(error, -0.2))) : 10.0;
        if (!(error <= 1.0)) {
            state->retries += 1.0;
            *state->suggested_step = step * (error < HUGE_VAL ? fmin(factor, 1.0) : 0.2);
            if (*state->suggested_step < SMALLEST_SHARE * whole) {
                char reason[sizeof instance->reason];
                memcpy(reason, instance->reason, sizeof reason);
                return fail(
                    instance, "the step at t = %.9g s fails however small it is%s%.300s", time, *reason ? ": " : "", reason
                );
            }
            continue;
        }
        elapsed = last ? whole : elapsed + step;
        if (!describe(instance) || !loops_closed(instance, begin_time + elapsed)) return 0;
        /* A step that was cut off at the end of the interval says little about how large the next may be. */
        if (!last || factor * step > *state->suggested_step) *state->suggested_step = factor * step;
    }
    return 1;
}

#endif
