/* The steps: what a run spends its time in, in a translation unit of its own that is optimized most. It needs nothing
 * of the rest of the unit. */
#include "model.h"

#include "linear.c"
#include "model_steps.c"

#include "steps.h"

#include "orthogonal.c"
#include "rows.c"
#include "saddle.c"
#include "inputs.c"

/* -- what the rule of integration remembers: the step before, then earlier rates of all quantities ------------------ */

/* No iteration matrix is kept. */
static void forget_iteration_matrix(State *state) { memset(state->iteration_matrix_use, 0, sizeof state->iteration_matrix_use); }

/* Nothing is remembered. */
static void forget_steps(State *state) {
    memset(state->ahead, 0, sizeof state->ahead);
    memset(state->history, 0, sizeof state->history);
    forget_iteration_matrix(state);
}

#if HISTORY > 0

/* Where rates jump from those of the state to those that the arguments hold, what is remembered jumps with them. */
static void restart_history(Instance *instance) {
    double after[HISTORY];
    jumped(&instance->parts, after);
    COPY(instance->state.history, after, HISTORY);
}

#else

static void restart_history(Instance *instance) { (void)instance; }

#endif

#include "step_ends.c"
#if SOLVER == EXCHANGED
#include "flow_functions.c"

/* An FMU for model exchange alone makes no steps, and its equations are there once. */
static int advance(Instance *instance, double begin_time, double end, double horizon) {
    (void)begin_time;
    (void)end;
    (void)horizon;
    return fail(instance, "the unit makes no steps: it is for model exchange");
}

#else
#include FORMULATION_FILE

#if !CONTINUOUS

/* -- steps of equal size, halved where they cannot be made ---------------------------------------------------------- */

/* Make a step; returns 0 with a reason, the state being as it was, where a shorter step may do, and -1 with a reason where
 * none does. */
typedef int (*Attempt)(Instance *instance, double time, double step);

/* One step; where it fails, two of half its size, up to eight times unless its work is bounded. `of` names the method for
 * messages. */
static int make_step(Instance *instance, double time, double step, int halvings, Attempt attempt, const char *of) {
    const int made = attempt(instance, time, step);
    if (made) return made > 0;
    if (halvings == HALVINGS || MOST_INCREMENTS > 0) {
        return fail_because(instance, "the step%s at t = %.9g s fails even with %.3g s", of, time, step);
    }
    instance->state.retries += 1.0;
    return make_step(instance, time, step / 2, halvings + 1, attempt, of)
        && make_step(instance, time + step / 2, step / 2, halvings + 1, attempt, of);
}

/* Advance over an interval without jumps of inputs; longer ones than the internal step are divided evenly. */
static int advance_equally(Instance *instance, double begin_time, double end, Attempt attempt, const char *of) {
    const double count = count_steps(begin_time, end, instance->state.step_size);
    const double step = (end - begin_time) / count;
    for (double index = 0.0; index < count; index += 1.0) {
        const double time = begin_time + index * step;
        if (is_stopped(instance)) return 0;
        if (!make_step(instance, time, step, 0, attempt, of) || !loops_closed(instance, time + step)) return 0;
    }
    return 1;
}

#endif

#if SOLVER == IMPLICIT
#include "newton.h"
#include "newton_machine.c"
#include "newton.c"
#include "implicit.c"
#elif SOLVER == ROSENBROCK
#include "adaptive_steps.c"
#else
#include "explicit.c"
#endif
#endif

const StepFunctions step_functions = {
    advance,
    inputs_at,
#if SOLVER == ROSENBROCK
    input_slopes_at,
#else
    NULL,
#endif
    run_on,
    next_event,
#if SOLVES_SADDLE
    solve_saddle,
#endif
    closure,
    integral_rates,
#if RATES_BY_ACCELERATIONS
    state_rates,
#endif
    outputs,
    restart_history,
    forget_steps,
    follow_loops,
    change_reference_quaternions,
    prepare,
#if OWN_MOTION
    motion,
    close_constraints,
#endif
};
