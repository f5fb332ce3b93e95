/* The unit around its steps: start, values, derivatives, and saved states. */
#include "model_rest.c"

#include "identity.h"

#include "host_checks.h"
#include "steps.h"
#include "unit.h"

#include "linear.c"
#include "orthogonal.c"
#include "assembly.c"
#include "consistent.c"
#include "sampling.c"
#include "readings.c"
#include "change_points.c"
#include "energy_watch.c"
#include "run_loop.c"
#include "run_reports.c"
#include "start.c"
#include "points.c"
#include "modes.c"
#include "values.c"
#include "derivatives.c"
#include "saved_states.c"
#if MODEL_EXCHANGE
#include "exchange.c"
#endif

const UnitFunctions fmu_functions = {
    .identity = IDENTITY,
    .variables = VARIABLES,
    .saved_size = sizeof(Saved),
    .create = create,
    .destroy = destroy,
    .reset = reset,
    .set_up = set_up,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .enter_events = enter_events,
    .exit_events = exit_events,
    .terminate = terminate,
    .get = get,
    .set = set,
    .set_slopes = set_slopes,
    .lead = lead,
    .get_rates = get_rates,
    .get_derivatives = get_derivatives,
    .step = step,
    .time = time_of,
    .last_step = last_step,
    .is_at_event = is_at_event,
    .pass_events = pass_events,
#if CLOCKS
    .follow_clocks = follow_clocks,
    .has_clock = has_clock,
    .set_clock = set_clock,
    .is_ticking = is_ticking,
    .interval_of = interval_of,
    .shift_of = shift_of,
#endif
    .save = save,
    .restore = restore,
    .release = release,
    .serialize = serialize,
    .deserialize = deserialize,
};
