/* Linearly implicit methods of Rosenbrock's kind [Hairer1996, sect. IV.7]: (1/(h gamma) - J) u_i = r_i in every stage. As
 * mbsfmu/simulation/rosenbrock.py and linearization.py, which say more. */

#define CONTROLLED (SIZE - INTEGRALS)   /* elements of y whose error is controlled, and on which rates depend */
#define SOLVED (CONTROLLED - CHAINED)   /* … of which the first follow from the others */
#define SLOPES (SOLVED + INTEGRALS)

#include "adaptive.c"

/* Where a step begins, and what is solved with the derivatives there. */
typedef struct {
    double start[ROOM(SIZE)], rates[ROOM(SIZE)], drift[ROOM(SIZE)];
    double slope[ROOM(SLOPES * CONTROLLED)];
    double factors[ROOM(SOLVED * SOLVED)];
    double share;                       /* h gamma */
    int pivots[ROOM(SOLVED)];
} Linearization;

/* Prepare solutions for h gamma. */
static int factorize_step(Instance *instance, Linearization *begin, double share) {
    begin->share = share;
    for (int j = 0; j < SOLVED; j++) {
        for (int i = 0; i < SOLVED; i++) {
            double sum = -begin->slope[i + SLOPES * (CHAINED + j)];
            if (j < CHAINED) sum -= share * begin->slope[i + SLOPES * j];
            begin->factors[i + SOLVED * j] = i == j ? sum + 1.0 / share : sum;
        }
    }
    return factorize(SOLVED, begin->factors, begin->pivots) || fail(instance, "the matrix of the step is singular");
}

/* Solve for one stage; the right side becomes the increment. */
static void solve_stage(const Linearization *begin, double *right) {
    double *const solved = right + CHAINED, *const integrals = right + CONTROLLED;
    for (int j = 0; j < CHAINED; j++) {
        const double weight = begin->share * right[j];
        for (int i = 0; i < SOLVED; i++) solved[i] += weight * begin->slope[i + SLOPES * j];
    }
    substitute(SOLVED, begin->factors, begin->pivots, solved);
    for (int j = 0; j < CHAINED; j++) right[j] = begin->share * (solved[j] + right[j]);
    for (int i = 0; i < INTEGRALS; i++) {
        for (int j = 0; j < CONTROLLED; j++) integrals[i] += begin->slope[SOLVED + i + SLOPES * j] * right[j];
        integrals[i] *= begin->share;
    }
}

/* The increments of all stages, and y at the end. */
static int increments_of(
    Instance *instance, Linearization *begin, double time, double step, double increments[][ROOM(SIZE)], double *end
) {
    double rates[ROOM(SIZE)];
    if (!factorize_step(instance, begin, step * DIAGONAL)) return 0;
    for (int stage = 0; stage < STAGES; stage++) {
        const double *const weights = couplings + stage * (stage - 1) / 2;
        const double *const couples = rate_couplings + stage * (stage - 1) / 2;
        double *const right = increments[stage];
        for (int i = 0; i < SIZE; i++) {
            end[i] = begin->start[i];
            right[i] = step * stage_slopes[stage] * begin->drift[i];
        }
        for (int k = 0; k < stage; k++) {
            const double weight = weights[k], coupling = couples[k] / step;
            for (int i = 0; i < SIZE; i++) {
                end[i] += weight * increments[k][i];
                right[i] += coupling * increments[k][i];
            }
        }
        instance->state.evaluations += stage > 0;
        if (stage > 0 && !rates_of(instance, time + stage_nodes[stage] * step, end, rates)) return 0;
        for (int i = 0; i < SIZE; i++) right[i] += stage > 0 ? rates[i] : begin->rates[i];
        solve_stage(begin, right);
    }
    for (int i = 0; i < SIZE; i++) end[i] += increments[STAGES - 1][i];
    return 1;
}

/* A step that has been tried. */
typedef struct {
    const double *start, *end, (*increments)[ROOM(SIZE)];
} Tried;

/* y at a share of a step. */
static void between_ends(const void *of, double share, double *y) {
    const Tried *tried = of;
    for (int i = 0; i < SIZE; i++) {
        double bend = 0.0;
        for (int row = INTERPOLANTS - 1; row >= 0; row--) {
            double sum = 0.0;
            for (int k = 0; k < STAGES; k++) sum += interpolation[k + STAGES * row] * tried->increments[k][i];
            bend = sum + share * bend;
        }
        y[i] = (1.0 - share) * tried->start[i] + share * (tried->end[i] + (1.0 - share) * bend);
    }
}

/* Where the state is: y, its rates and their derivatives. */
static int linearize(Instance *instance, Linearization *begin, double time) {
    const State *state = &instance->state;
    double *const slopes = instance->parts.input_rates;
    int drifts = 0;
    pack(state, begin->start);
    pack_rates(state, begin->rates);
    if (!find_slope(instance, time, begin->slope)) return 0;
    if (!all_finite(begin->slope, SLOPES * CONTROLLED)) {
        return fail(instance, "the derivatives of the equations are not finite");
    }
    for (int i = 0; i < SIZE; i++) begin->drift[i] = 0.0;
    input_slopes_at(instance, time, slopes);
    for (int i = 0; i < INPUTS; i++) drifts |= slopes[i] != 0.0;
    return !drifts || find_drift(instance, begin->drift);
}

/* Steps as large as the tolerance allows; the last ends where the interval ends. */
static int advance(Instance *instance, double begin_time, double end) {
    State *state = &instance->state;
    double increments[STAGES][ROOM(SIZE)], values[ROOM(SIZE)];
    Linearization begin;
    /* Counted from the beginning of the interval: where time is late, short steps would be lost in its resolution. */
    const double whole = end - begin_time;
    const Tried tried = {begin.start, values, (const double (*)[ROOM(SIZE)])increments};
    double elapsed = 0.0;
    while (elapsed < whole) {
        const double time = begin_time + elapsed;
        double most = MOST_FACTOR, error = HUGE_VAL;
        char reason[sizeof instance->reason] = "";
        if (!linearize(instance, &begin, time)) {
            memcpy(reason, instance->reason, sizeof reason);
            return fail(instance, SOLVER_NAME " fails at t = %.9g s: %.300s", time, reason);
        }
        if (!(*state->suggested_step > 0.0)) *state->suggested_step = first_step(instance, begin.start, begin.rates, time, whole);
        for (;;) {
            if (is_stopped(instance)) return 0;
            const double suggested = *state->suggested_step;
            const int last = elapsed + suggested * (1.0 + SAME_TIME) >= whole;
            const double step = last ? whole - elapsed : suggested, reached = last ? whole : elapsed + suggested;
            *instance->reason = '\0';
            error = HUGE_VAL;
            if (increments_of(instance, &begin, time, step, increments, values)) {
                error = size_of(state, begin.start, values, increments[STAGES - 1]);
            }
            double factor = error > 0.0 ? SAFETY * pow(error, -1.0 / ORDER) : MOST_FACTOR;
            factor = smaller(MOST_FACTOR, larger(LEAST_FACTOR, factor));
            if (error <= 1.0 && look_inside(instance, time, step, begin_time + reached, between_ends, &tried)
                && commit(instance, begin_time + reached, step, values)) {
                const double following = smaller(factor, most) * step;
                /* A step that was cut off at the end of the interval says little about how large the next may be. */
                *state->suggested_step = last ? larger(following, suggested) : following;
                elapsed = reached;
                break;
            }
            state->retries += 1.0;
            most = 1.0;
            *state->suggested_step = step * (error <= 1.0 ? LEAST_FACTOR : smaller(factor, 1.0));
            if (!(*state->suggested_step >= SMALLEST_SHARE * whole)) {
                memcpy(reason, instance->reason, sizeof reason);
                return fail(
                    instance, "the step of " SOLVER_NAME " at t = %.9g s fails however small it is%s%.300s", time,
                    *reason ? ": " : "", reason
                );
            }
        }
        if (!describe(instance) || !loops_closed(instance, begin_time + elapsed)) return 0;
    }
    return 1;
}
