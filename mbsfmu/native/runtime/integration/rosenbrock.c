/* Linearly implicit methods of Rosenbrock's kind [Hairer1996, sect. IV.7]: (1/(h gamma) - J) u_i = r_i in every stage. As
 * mbsfmu/integration/rosenbrock.py and linearization.py, which say more. */

#include "rosenbrock_sizes.h"

/* The increments of all stages. */
typedef double Increments[ROOM(SIZE)];

static inline Increments *increments_in(const Instance *instance) { return (Increments *)scratch_of_stages(&instance->parts); }

#include "adaptive.c"

#if FACTORS > 0
#include "factored_stages.c"
#else
#include "dense_stages.c"
#endif

/* The increments of all stages, and y at the end. */
static int increments_of(
    Instance *instance, Linearization *begin, double time, double step, Increments *increments, double *end
) {
    double rates[ROOM(SIZE)], coupled[STAGES];
    if (!factorize_step(instance, begin, step * DIAGONAL)) return 0;
    for (int stage = 0; stage < STAGES; stage++) {
        const double *const weights = couplings + stage * (stage - 1) / 2;
        const double *const couples = rate_couplings + stage * (stage - 1) / 2;
        double *const right = increments[stage];
        for (int k = 0; k < stage; k++) coupled[k] = couples[k] / step;
        for (int i = 0; i < SIZE; i++) {
            end[i] = begin->start[i];
            right[i] = step * stage_slopes[stage] * begin->drift[i];
        }
        add_columns(stage, SIZE, increments[0], ROOM(SIZE), weights, end);
        add_columns(stage, SIZE, increments[0], ROOM(SIZE), coupled, right);
        instance->state.evaluations += stage > 0;
        if (stage > 0 && !rates_of(instance, time + stage_nodes[stage] * step, end, rates)) return 0;
        for (int i = 0; i < SIZE; i++) right[i] += stage > 0 ? rates[i] : begin->rates[i];
        if (!solve_stage(instance, begin, stage, right)) return 0;
    }
    for (int i = 0; i < SIZE; i++) end[i] += increments[STAGES - 1][i];
    return 1;
}

/* A step that has been tried. */
typedef struct {
    const double *start, *end;
    const Increments *increments;
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

/* The step that goes past where a run was asked to come, as the state keeps it; see mbsfmu/integration/steps_past_stop.py. */
enum { UNTOUCHED, ORIGIN, STARTED_AT, ENDS_AT, STEP_LENGTH, NEXT_STEP, AHEAD_HEAD };
typedef char ahead_has_room[AHEAD == AHEAD_HEAD + (2 + STAGES) * SIZE ? 1 : -1];

static void keep_ahead(State *state, double origin, double elapsed, double reached, double step, double next, const Tried *tried) {
    double *const ahead = state->ahead, *const values = ahead + AHEAD_HEAD;
    ahead[ORIGIN] = origin;
    ahead[STARTED_AT] = elapsed;
    ahead[ENDS_AT] = reached;
    ahead[STEP_LENGTH] = step;
    ahead[NEXT_STEP] = next;
    COPY(values, tried->start, SIZE);
    COPY(values + SIZE, tried->end, SIZE);
    for (int k = 0; k < STAGES; k++) COPY(values + (2 + k) * SIZE, tried->increments[k], SIZE);
}

/* Bring the state to a time inside a step; it counts as no step of its own. */
static int go_inside(Instance *instance, double time, double elapsed, const double *y) {
    const double steps = instance->state.steps;
    if (!commit(instance, time, elapsed, y)) return 0;
    instance->state.steps = steps;
    return 1;
}

/* Take a step whose end is past the target, all in s since the origin, and come to the target. */
static int pass_over(Instance *instance, double origin, double elapsed, double step, double reached, double target, const Tried *tried) {
    State *state = &instance->state;
    State *const before = &instance->waiting[BEFORE_PASSING];
    double y[ROOM(SIZE)];
    *before = *state;
    if (!commit(instance, origin + reached, step, tried->end)) return 0;
    *state = *before;
    between_ends(tried, (target - elapsed) / step, y);
    return commit(instance, origin + target, target - elapsed, y);
}

/* Go on along the step that went past the state's time, as far as to the target or its end; tells where that is in s since its
 * origin. Where it leads nowhere it is forgotten. */
static int follow_ahead(Instance *instance, double begin_time, double end, double *origin, double *elapsed) {
    State *state = &instance->state;
    double start[ROOM(SIZE)], values[ROOM(SIZE)], y[ROOM(SIZE)], *const ahead = state->ahead;
    Increments *const increments = increments_in(instance);
    const double step = ahead[STEP_LENGTH], reached = ahead[ENDS_AT], from = ahead[STARTED_AT];
    const double here = begin_time - ahead[ORIGIN], target = end - ahead[ORIGIN];
    const int inside = target < reached;
    const Tried tried = {start, values, (const Increments *)increments};
    ahead[STEP_LENGTH] = 0.0;
    COPY(start, ahead + AHEAD_HEAD, SIZE);
    COPY(values, ahead + AHEAD_HEAD + SIZE, SIZE);
    for (int k = 0; k < STAGES; k++) COPY(increments[k], ahead + AHEAD_HEAD + (2 + k) * SIZE, SIZE);
    if (inside) {
        between_ends(&tried, (target - from) / step, y);
    } else {
        COPY(y, values, SIZE);
    }
    const double until = inside ? target : reached;
    if (!go_inside(instance, ahead[ORIGIN] + until, until - here, y)) return 1;
    *origin = ahead[ORIGIN];
    *elapsed = until;
    if (inside) {
        ahead[STEP_LENGTH] = step;
        return 1;
    }
    *state->suggested_step = ahead[NEXT_STEP];
    return describe(instance) && loops_closed(instance, *origin + reached);
}

/* Where the state is: y, its rates and their derivatives. */
static int linearize(Instance *instance, Linearization *begin, double time) {
    const State *state = &instance->state;
    double *const slopes = instance->parts.input_rates;
    int drifts = 0;
    pack(state, begin->start);
    pack_rates(state, begin->rates);
    if (!find_derivatives(instance, begin, time)) return 0;
    for (int i = 0; i < SIZE; i++) begin->drift[i] = 0.0;
    input_slopes_at(instance, time, slopes);
    for (int i = 0; i < INPUTS; i++) drifts |= slopes[i] != 0.0;
    return !drifts || find_drift(instance, begin->drift);
}

/* The fraction of the tolerances that is allowed in a step, by the change of y in it. */
static double slightness(const State *state, const double *start, const double *end) {
    double change = LEAST_TOLERANCE / (state->tolerance_factor * ABSOLUTE_TOLERANCE);
    for (int i = 0; i < WATCHED; i++) change = larger(fabs(end[i] - start[i]) / (SLIGHT * explicit_scales[i]), change);
    return smaller(1.0, change);
}

/* Steps as large as the tolerance allows; the last may go past the end of the interval, up to the horizon. */
static int advance(Instance *instance, double begin_time, double end, double horizon) {
    State *state = &instance->state;
    Increments *const increments = increments_in(instance);
    double values[ROOM(SIZE)], origin = begin_time;
    Linearization begin;
    /* Counted from the beginning of the interval: where time is late, short steps would be lost in its resolution. */
    const Tried tried = {begin.start, values, (const Increments *)increments};
    double elapsed = 0.0;
    Progress progress = {0};
#if LED
    instance->leads = 0;
#endif
    if (state->ahead[STEP_LENGTH] > 0.0 && !follow_ahead(instance, begin_time, end, &origin, &elapsed)) return 0;
    const double target = end - origin, whole = horizon - origin;
    while (elapsed < target) {
        const double time = origin + elapsed;
        double most = MOST_FACTOR, error = HUGE_VAL;
        char reason[sizeof instance->reason] = "";
        if (!linearize(instance, &begin, time)) {
            memcpy(reason, instance->reason, sizeof reason);
            return fail(instance, SOLVER_NAME " fails at t = %.9g s: %.300s", time, reason);
        }
        if (!(*state->suggested_step >= SMALLEST_SHARE * whole)) { /* none yet, or one that would lead nowhere */
            *state->suggested_step = first_step(instance, begin.start, begin.rates, time, whole);
        }
        for (;;) {
            if (is_stopped(instance) || !goes_on(instance, &progress, time, elapsed, whole)) return 0;
            const double suggested = *state->suggested_step;
            const int last = elapsed + suggested * (1.0 + SAME_TIME) >= whole;
            const double step = last ? whole - elapsed : suggested, reached = last ? whole : elapsed + suggested;
            *instance->reason = '\0';
            error = HUGE_VAL;
            if (increments_of(instance, &begin, time, step, increments, values)) {
                error = size_of(state, begin.start, values, increments[STAGES - 1]);
                if (step * LEAST_FACTOR >= SMALLEST_SHARE * whole) error /= slightness(state, begin.start, values);
            }
            double factor = error > 0.0 ? SAFETY * pow(error, -1.0 / ORDER) : MOST_FACTOR;
            factor = smaller(MOST_FACTOR, larger(LEAST_FACTOR, factor));
            if (error <= 1.0 && look_inside(instance, time, step, origin + reached, between_ends, &tried)
                && (reached > target ? pass_over(instance, origin, elapsed, step, reached, target, &tried)
                                     : commit(instance, origin + reached, step, values))) {
                double following = smaller(factor, most) * step;
                /* A step that was cut off at the end of the interval says little about how large the next may be. */
                if (last) following = larger(following, suggested);
                if (reached > target) {
                    keep_ahead(state, origin, elapsed, reached, step, following, &tried);
                    return 1;
                }
                *state->suggested_step = following;
                elapsed = reached;
                if (instance->wanted && instance->wanted->note_step) instance->wanted->note_step(instance, origin + elapsed);
                break;
            }
            state->retries += 1.0;
            note_failure(instance, &progress);
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
        if (!describe(instance) || !loops_closed(instance, origin + elapsed)) return 0;
    }
    return 1;
}
