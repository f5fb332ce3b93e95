/* Steps that are chosen by their error: what they ask of a machine, and its way from event to event. adaptive.h and adaptive.c are
 * made of mbsfmu/stepping/adaptive.py, rosenbrock.c of rosenbrock.py beside it. */

#if SOLVER != ROSENBROCK
#undef STAGES
#define STAGES RK45_STAGES
#undef WATCHED
#define WATCHED SIZE
#define MOST_FACTOR RK45_MOST_FACTOR
#define ORDER RK45_ORDER
#define SOLVER_NAME "rk45"
#endif

#define FOLLOWS_SLIGHT (SOLVER == ROSENBROCK)
#include "adaptive.h"

static int find_end(Instance *instance, Attempt *attempt);
static void find_between(Instance *instance, Attempt *attempt, double share, double *values);

static int find_rates(Instance *instance, double time, const double *values, double *rates) {
    instance->state.evaluations += 1.0;
    return rates_of(instance, time, values, rates);
}

static void begin_try(Instance *instance) { *instance->reason = '\0'; }

static void count_refusal(Instance *instance) {
    instance->state.retries += 1.0;
    if (*instance->reason) memcpy(instance->refusal, instance->reason, sizeof instance->refusal);
}

/* Bring the state to each of the times inside a step that is going to be taken at which something is wanted; afterwards it
 * is where it was. Returns 0 with a reason where it cannot be brought there. */
static int look_inside(Instance *instance, Attempt *attempt, double end) {
    Wanted *wanted = instance->wanted;
    if (!wanted || wanted->count == 0 || !(*wanted->times < end)) return 1;
    State *state = &instance->state;
    State *const before = &instance->waiting[BEFORE_LOOKING];
    int made = 1;
    *before = *state;
    while (made && wanted->count > 0 && *wanted->times < end) {
        const double elapsed = *wanted->times - attempt->time;
        double y[ROOM(SIZE)];
        find_between(instance, attempt, elapsed / attempt->step, y);
        made = commit(instance, *wanted->times, elapsed, y);
        if (made) {
            wanted->take(instance, *wanted->times);
            wanted->times++;
            wanted->count--;
        }
        *state = *before;
    }
    return made;
}

#if SOLVER == ROSENBROCK
static int pass_over(Instance *instance, const Way *way, Attempt *attempt);
#endif

static int take_end(Instance *instance, const Way *way, Attempt *attempt) {
    const double end = way->origin + attempt->reached;
    if (!look_inside(instance, attempt, end)) return 0;
#if SOLVER == ROSENBROCK
    if (attempt->reached > way->target) return pass_over(instance, way, attempt);
#endif
    return commit(instance, end, attempt->step, attempt->end);
}

#include "adaptive.c"

#if SOLVER == ROSENBROCK

#include "rosenbrock_stages.c"
#include "rosenbrock.c"

typedef char attempt_has_room[ATTEMPT >= sizeof(Attempt) / sizeof(double) ? 1 : -1];

/* The step that goes past where a run was asked to come, as the state keeps it; see mbsfmu/integration/solver.py. */
enum { UNTOUCHED, ORIGIN, STARTED_AT, ENDS_AT, STEP_LENGTH, NEXT_STEP, AHEAD_HEAD };
typedef char ahead_has_room[AHEAD == AHEAD_HEAD + (2 + STAGES) * SIZE ? 1 : -1];

/* Take a step whose end is past the target, and come to the target. */
static int pass_over(Instance *instance, const Way *way, Attempt *attempt) {
    State *state = &instance->state;
    State *const before = &instance->waiting[BEFORE_PASSING];
    const double passed = way->target - way->elapsed;
    double y[ROOM(SIZE)], *const ahead = state->ahead, *const values = ahead + AHEAD_HEAD;
    *before = *state;
    if (!commit(instance, way->origin + attempt->reached, attempt->step, attempt->end)) return 0;
    *state = *before;
    find_between(instance, attempt, passed / attempt->step, y);
    if (!commit(instance, way->origin + way->target, passed, y)) return 0;
    ahead[ORIGIN] = way->origin;
    ahead[STARTED_AT] = way->elapsed;
    ahead[ENDS_AT] = attempt->reached;
    ahead[STEP_LENGTH] = attempt->step;
    COPY(values, attempt->start, SIZE);
    COPY(values + SIZE, attempt->end, SIZE);
    COPY(values + 2 * SIZE, attempt->increments, STAGES * SIZE);
    return 1;
}

/* Bring the state to a time inside a step; it counts as no step of its own. */
static int go_inside(Instance *instance, double time, double elapsed, const double *y) {
    const double steps = instance->state.steps;
    if (!commit(instance, time, elapsed, y)) return 0;
    instance->state.steps = steps;
    return 1;
}

/* Go on along the step that went past the state's time, as far as to the target or its end; the way goes on from there. Where it
 * leads nowhere it is forgotten. */
static int follow_ahead(Instance *instance, double end, Way *way, Attempt *attempt) {
    State *state = &instance->state;
    double y[ROOM(SIZE)], *const ahead = state->ahead, *const values = ahead + AHEAD_HEAD;
    const double step = ahead[STEP_LENGTH], reached = ahead[ENDS_AT];
    const double here = way->origin - ahead[ORIGIN], target = end - ahead[ORIGIN];
    const int inside = target < reached;
    ahead[STEP_LENGTH] = 0.0;
    COPY(attempt->start, values, SIZE);
    COPY(attempt->end, values + SIZE, SIZE);
    COPY(attempt->increments, values + 2 * SIZE, STAGES * SIZE);
    if (inside) {
        find_between(instance, attempt, (target - ahead[STARTED_AT]) / step, y);
    } else {
        COPY(y, attempt->end, SIZE);
    }
    const double until = inside ? target : reached;
    if (!go_inside(instance, ahead[ORIGIN] + until, until - here, y)) return 1;
    way->origin = ahead[ORIGIN];
    way->elapsed = until;
    if (inside) {
        ahead[STEP_LENGTH] = step;
        return 1;
    }
    *state->suggested_step = ahead[NEXT_STEP];
    return describe(instance) && loops_closed(instance, way->origin + reached);
}

/* Where the state is: y, its rates and their derivatives. */
static int begin_at_state(Instance *instance, Attempt *attempt) {
    const State *state = &instance->state;
    double *const slopes = instance->parts.input_rates;
    int drifts = 0;
    pack(state, attempt->start);
    pack_rates(state, attempt->rates);
    if (!find_derivatives(instance, attempt)) return 0;
    for (int i = 0; i < SIZE; i++) attempt->drift[i] = 0.0;
    input_slopes_at(instance, attempt->time, slopes);
    for (int i = 0; i < INPUTS; i++) drifts |= slopes[i] != 0.0;
    return !drifts || find_drift(instance, attempt->drift);
}

#else

static int begin_at_state(Instance *instance, Attempt *attempt) {
    pack(&instance->state, attempt->start);
    pack_rates(&instance->state, attempt->rates);
    return 1;
}

#endif

/* Steps as large as the tolerance allows; the last of a Rosenbrock method may go past the end of the interval, up to the horizon. */
static int advance_on_way(Instance *instance, double begin_time, double end, double horizon) {
    State *state = &instance->state;
    Way way = {.origin = begin_time, .most = MOST_FACTOR};
#if SOLVER == ROSENBROCK
    Attempt *const attempt = (Attempt *)scratch_of_stages(&instance->parts);
#if LED
    instance->leads = 0;
#endif
    if (state->ahead[STEP_LENGTH] > 0.0 && !follow_ahead(instance, end, &way, attempt)) return 0;
    way.whole = horizon - way.origin;
#else
    Attempt tried, *const attempt = &tried;
    (void)horizon;
    way.whole = end - way.origin;
#endif
    way.target = end - way.origin;
    while (way.elapsed < way.target) {
        attempt->time = way.origin + way.elapsed;
        way.suggested = *state->suggested_step;
        if (!begin_at_state(instance, attempt)) return fail_because(instance, "%s fails at t = %.9g s", SOLVER_NAME, attempt->time);
        if (!make_step(instance, &way, attempt)) return 0;
#if SOLVER == ROSENBROCK
        if (way.elapsed > way.target) {
            state->ahead[NEXT_STEP] = way.suggested;
            return 1;
        }
#endif
        *state->suggested_step = way.suggested;
        if (instance->wanted && instance->wanted->note_step) instance->wanted->note_step(instance, way.origin + way.elapsed);
        if (!describe(instance) || !loops_closed(instance, way.origin + way.elapsed)) return 0;
    }
    return 1;
}

static int advance(Instance *instance, double begin_time, double end, double horizon) {
#if SOLVER == ROSENBROCK
    Linearization linearization; /* where a step begins */
    instance->linearization = &linearization;
    const int made = advance_on_way(instance, begin_time, end, horizon);
    instance->linearization = NULL;
    return made;
#else
    return advance_on_way(instance, begin_time, end, horizon);
#endif
}
