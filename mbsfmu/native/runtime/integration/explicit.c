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

/* The error of a step that was taken, as mbsfmu/integration/explicit.py has it. */
static double estimate(State *state, double step, const double *start, const double *end, const double *first, const double *fourth) {
    enum { COUNT = SIZE - INTEGRALS };
    double *const last = state->error_history, *const older = last + COUNT, *const newer = older + COUNT;
    double *const middle = newer + COUNT, *const step_before = middle + COUNT;
    double *const count = step_before + 1, *const counted = count + 1;
    double fifth[ROOM(SIZE)], apart = 0.0, largest = 0.0, embedded = 0.0, error = 0.0;
    pack_rates(state, fifth);
    for (int i = 0; i < COUNT; i++) {
        apart = larger(apart, fabs(first[i] - last[i]));
        largest = larger(largest, fabs(first[i]));
    }
    if (apart > SAME * largest || fabs(step - *step_before) > SAME * step) *count = *counted = 0.0;
    for (int i = 0; i < COUNT; i++) {
        const double bend = end[i] - start[i] - 0.5 * step * (first[i] + fifth[i]), turn = 2.5 * step * (fifth[i] - first[i]);
        const double distance = fabs(step / 6.0 * (fourth[i] - fifth[i]));
        const double whole = fabs(11.0 * bend + turn + 38.0 * middle[i] + older[i]) / 60.0;
        embedded = larger(embedded, distance / larger(fabs(end[i]), explicit_scales[i]));
        error = larger(error, whole / larger(fabs(start[i]), explicit_scales[i]));
        last[i] = fifth[i];
        older[i] = newer[i];
        newer[i] = 11.0 * bend - turn;
        middle[i] = bend;
    }
    const double before = *count, provisional = *counted;
    *step_before = step;
    *count = smaller(3.0, before + 1.0);
    *counted = before < 2.0 ? provisional + embedded : 0.0;
    return before < 2.0 ? embedded : before == 2.0 ? 3.0 * error - provisional : error;
}

/* One step of the classical method of order four. */
static int attempt(Instance *instance, double time, double step) {
    static const double nodes[] = {0.0, 0.5, 0.5, 1.0};
    static const double weights[] = {0.5, 0.0, 0.5, 0.0, 0.0, 1.0};
    State *state = &instance->state;
    double y[ROOM(SIZE)], start[ROOM(SIZE)], k[4][ROOM(SIZE)], trial[ROOM(SIZE)];
    pack(state, y);
    COPY(start, y, SIZE);
    if (!evaluate_stages(instance, time, step, y, 0, 4, nodes, weights, k, trial)) return 0;
    for (int i = 0; i < SIZE; i++) y[i] += step / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    if (!commit(instance, time + step, step, y)) return 0;
    state->embedded_distance += estimate(state, step, start, y, k[0], k[3]);
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
