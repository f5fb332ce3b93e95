/* The steps: what a run spends its time in, in a translation unit of its own that is optimized most. It needs nothing
 * of the rest of the unit. */
#include "model.h"

#include "linear.c"
#include "model_steps.c"

#include "steps.h"

#include "orthogonal.c"
#include "rows.c"
#include "closed_loops.c"
#include "saddle.c"
#include "inputs.c"
#include "history.c"
#include "reference_quaternions.c"
#include "follow_loops.c"
#if SOLVER == EXCHANGED
#include "flow.h"
#include "flow_functions.c"
#include "flow_no_steps.c"
#else
#include FORMULATION_FILE
#if !CONTINUOUS
#include "equal_steps.c"
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
