/* The unit around its steps: start, derivatives, and the FMI, whose functions alone are visible outside. */
#include "model_rest.c"

#include "identity.h"

#include "steps.h"

#include "linear.c"
#include "orthogonal.c"
#include "partition.c"
#include "assembly.c"
#include "simulation.c"
#include "variation.c"
#include "reactions.c"
#include "fmi2_functions.c"
#include "fmi2_derivatives.c"
#include "fmi2_states.c"
#include "unsupported.c"
