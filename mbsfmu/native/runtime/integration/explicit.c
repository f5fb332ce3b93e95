/* Explicit Runge-Kutta methods; y ends with the integrals. */


/* The stages of an explicit method, from the first that is not known, by the lower triangle of its tableau; `trial` becomes
 * where the last one is. */
static int evaluate_stages(
    Instance *instance, double time, double step, const double *y, int first, int count, const double *nodes,
    const double *weights, double stages[][ROOM(SIZE)], double *trial
) {
    for (int stage = first; stage < count; stage++) {
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
 * magnitude of what differs; integrals apart. Weight that is moved from k4 to the rates at the end leaves the
 * conditions of order three as they are. */
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
    double y[ROOM(SIZE)], k[4][ROOM(SIZE)], trial[ROOM(SIZE)];
    pack(state, y);
    if (!evaluate_stages(instance, time, step, y, 0, 4, nodes, weights, k, trial)) return 0;
    for (int i = 0; i < SIZE; i++) y[i] += step / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    if (!commit(instance, time + step, step, y)) return 0;
    state->embedded_distance += estimate(state, step, y, k[3]);
    return describe(instance) ? 1 : -1;
}

static int advance(Instance *instance, double begin_time, double end, double horizon) {
    (void)horizon;
    return advance_equally(instance, begin_time, end, attempt, " of rk4");
}

#else

#include "adaptive_steps.c"

/* Dormand and Prince, order five with an error estimate of order four (J. Comput. Appl. Math. 6, 1980); steps are chosen as
 * SciPy's RK45 does. The last stage is where the step ends. */
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
/* Weights of the stages inside a step, of order four: by the first to fourth power of its share (L. F. Shampine, Some
 * practical Runge-Kutta formulas, Math. Comp. 46, 1986). */
static const double dormand_inside[7][4] = {
    {1.0, -8048581381.0 / 2820520608.0, 8663915743.0 / 2820520608.0, -12715105075.0 / 11282082432.0},
    {0.0, 0.0, 0.0, 0.0},
    {0.0, 131558114200.0 / 32700410799.0, -68118460800.0 / 10900136933.0, 87487479700.0 / 32700410799.0},
    {0.0, -1754552775.0 / 470086768.0, 14199869525.0 / 1410260304.0, -10690763975.0 / 1880347072.0},
    {0.0, 127303824393.0 / 49829197408.0, -318862633887.0 / 49829197408.0, 701980252875.0 / 199316789632.0},
    {0.0, -282668133.0 / 205662961.0, 2019193451.0 / 616988883.0, -1453857185.0 / 822651844.0},
    {0.0, 40617522.0 / 29380423.0, -110615467.0 / 29380423.0, 69997945.0 / 29380423.0},
};

static void find_between(Instance *instance, Attempt *attempt, double share, double *values) {
    (void)instance;
    COPY(values, attempt->start, SIZE);
    for (int stage = 0; stage < STAGES; stage++) {
        const double *powers = dormand_inside[stage], *increment = attempt->increments + SIZE * stage;
        const double weight = share * (powers[0] + share * (powers[1] + share * (powers[2] + share * powers[3])));
        for (int i = 0; i < SIZE; i++) values[i] += attempt->step * weight * increment[i];
    }
}

static int find_end(Instance *instance, Attempt *attempt) {
    double(*const stages)[ROOM(SIZE)] = (double(*)[ROOM(SIZE)])attempt->increments;
    COPY(stages[0], attempt->rates, SIZE);
    if (!evaluate_stages(
            instance, attempt->time, attempt->step, attempt->start, 1, STAGES, dormand_nodes, dormand_weights, stages, attempt->end
        )) return 0;
    for (int i = 0; i < SIZE; i++) {
        double error = 0.0;
        for (int stage = 0; stage < STAGES; stage++) error += dormand_errors[stage] * stages[stage][i];
        attempt->error[i] = attempt->step * error;
    }
    return 1;
}

#endif
