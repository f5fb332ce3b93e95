/* Double-step: equations of motion in independent coordinates, from which loop equations give the others. */

#include "partition.c"
#include "dependent.c"

/* Describe the state that a step has led to as the next one needs it. */
static void change_chart(Instance *instance) { change_reference_quaternions(instance); }

/* Choose the coordinates; returns 0 with a reason in a singular configuration. */
static inline int prepare(Instance *instance) { return partition(instance, instance->state.dependent); }

#if SOLVER == IMPLICIT
#include "reduced_step.c"
#else
#include "reduced_form.c"
#endif
