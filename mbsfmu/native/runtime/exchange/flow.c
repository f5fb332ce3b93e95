/* The equations for somebody else's solver, in a translation unit of their own: those of the unit's own steps may be in
 * another form, with other functions of the same names. */
#include "model.h"

#include "linear.c"
#include "model_flow.c"

/* An instance has the same layout everywhere: how much room it has for its own steps depends on who makes these. */
#include "instance.h"

#undef SOLVER
#define SOLVER EXCHANGED

#include "steps.h"

/* What does not depend on who makes the steps is there once. */
#define closure(...) step_functions.closure(__VA_ARGS__)
#define integral_rates(...) step_functions.integral_rates(__VA_ARGS__)
#define state_rates(...) step_functions.state_rates(__VA_ARGS__)
#define inputs_at(...) step_functions.inputs_at(__VA_ARGS__)
#define restart_history(...) step_functions.restart_history(__VA_ARGS__)
#define forget_steps(...) step_functions.forget_steps(__VA_ARGS__)

#include "orthogonal.c"
#include "rows.c"
#include "step_ends.c"
#include "flow_functions.c"
