/* The unit in one translation unit: nothing but the functions of the FMI is visible outside. */
#include "model.c"

#include "instance.h"

#include "linear.c"
#include "partition.c"
#include "assembly.c"
#if FORMULATION == DOUBLE_STEP
#include "dependent.c"
#include "double_step.c"
#else
#include "penalty.c"
#endif
#include "newton.c"
#include "simulation.c"
#include "fmi2_functions.c"
#include "unsupported.c"
