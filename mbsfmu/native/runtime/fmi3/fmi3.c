/* FMI 3.0: its words for what a unit does. */
#include "fmi3_component.h"

#include "fmi3_values.c"
#include "fmi3_functions.c"
#include "fmi3_steps.c"
#include "fmi3_states.c"
#include "fmi3_unsupported.c"
#if CLOCKS
#include "fmi3_clocks.c"
#endif
#if MODEL_EXCHANGE
#include "fmi3_exchange.c"
#endif
