/* FMI 2.0: its words for what a unit does. */
#include "fmi2_component.h"

#include "fmi2_functions.c"
#include "fmi2_values.c"
#include "fmi2_states.c"
#include "fmi2_unsupported.c"
#if MODEL_EXCHANGE
#include "fmi2_exchange.c"
#endif
