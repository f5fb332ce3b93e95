/* The unit in one translation unit: nothing but the functions of the FMI is visible outside. */
#include "model.c"

#include "instance.h"

#include "linear.c"
#include "partition.c"
#include "assembly.c"
#if FORMULATION == DOUBLE_STEP
#include "dependent.c"
#endif
#include "simulation.c"
#if FORMULATION == FIRST_ORDER
#include "first_order.c"
#elif FORMULATION == PENALTY_BASED
#include "penalty.c"
#elif FORMULATION == PROJECTED
#if SOLVER == TRAPEZOIDAL
#include "penalty.c"
#endif
#include "projection.c"
#elif SOLVER == TRAPEZOIDAL
#include "double_step.c"
#else
#include "reduced_form.c"
#endif
#if SOLVER == TRAPEZOIDAL
#include "newton.c"
#include "trapezoidal.c"
#else
#include "explicit.c"
#endif
#include "variation.c"
#include "fmi2_functions.c"
#include "fmi2_derivatives.c"
#include "fmi2_states.c"
#include "unsupported.c"
