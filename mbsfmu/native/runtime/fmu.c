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
#if SOLVER == TRAPEZOIDAL
#if FORMULATION == DOUBLE_STEP
#include "double_step.c"
#else
#include "penalty.c"
#endif
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
