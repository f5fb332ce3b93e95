/* The steps: what a run spends its time in, in a translation unit of its own that is optimized most. It needs nothing
 * of the rest of the unit. */
#include "model_steps.c"

#include "steps.h"

#include "linear.c"
#include "orthogonal.c"
#include "rows.c"
#include "saddle.c"
#if FORMULATION == DOUBLE_STEP
#include "partition.c"
#include "dependent.c"
#endif
#include "inputs.c"
#include "history.c"
#include "recentre.c"
#if FORMULATION == FIRST_ORDER
#include "first_order.c"
#elif FORMULATION == PENALTY_BASED
#include "penalty.c"
#elif FORMULATION == PROJECTED
#if SOLVER == IMPLICIT
#include "penalty.c"
#endif
#include "projection.c"
#elif SOLVER == IMPLICIT
#include "double_step.c"
#else
#include "reduced_form.c"
#endif
#if SOLVER != RK45
#include "equal_steps.c"
#endif
#if SOLVER == IMPLICIT
#include "newton.c"
#include "implicit.c"
#else
#include "explicit.c"
#endif

const StepFunctions step_functions = {
    advance,
    inputs_at,
    next_event,
    solve_saddle,
    closure,
    integral_rates,
    outputs,
    let_history_jump,
    forget_steps,
#if FORMULATION == DOUBLE_STEP
    partition,
#elif FORMULATION == FIRST_ORDER
    choose_rows,
#endif
#if FORMULATION == FIRST_ORDER || FORMULATION == PROJECTED
    motion,
#endif
};
