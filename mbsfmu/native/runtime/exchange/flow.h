/* The equations as somebody else's solver integrates them, y' = f(t, y), compiled for themselves as the steps are. */
#ifndef MBSFMU_FLOW_H
#define MBSFMU_FLOW_H

#include "instance.h"

/* What changes along a direction of y and the inputs; rates are there before where a Jacobian is kept. */
typedef struct {
    double rates[ROOM(POINT)], outputs[ROOM(OUTPUTS)];
    double coordinates[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)], accelerations[ROOM(COORDINATES)];
} Change;

/* Functions that return truths give 0 with a reason. The state's time, references, choice of coordinates and of loop
 * equations describe y; its coordinates are where dependent ones are looked for. */
typedef struct {
    /* y and y' of the state. */
    void (*pack)(const State *, double *y);
    void (*pack_rates)(const State *, double *rates);
    /* y' at a time. */
    int (*rates_of)(Instance *, double time, const double *y, double *rates);
    /* Bring the state to y at a time, from where it is. */
    int (*reach)(Instance *, double time, const double *y);
    /* Describe the motion anew where it is due. */
    int (*describe)(Instance *);
    /* Whether the loops are closed as far as the formulation promises. */
    int (*loops_closed)(Instance *, double time);
#if KEEPS_JACOBIAN
    /* The derivatives of y' at the state by y, integrals apart, on which no rate depends; and by the inputs. */
    int (*find_jacobian)(Instance *, PointJacobian *);
    int (*find_input_jacobian)(Instance *, PointJacobian *);
#endif
#if CHANGES_KNOWN
    int (*find_change)(Instance *, const double *d_y, const double *d_inputs, Change *);
#endif
} FlowFunctions;

#define flow_functions NAMED(mbsfmu_flow_functions)
extern INTERNAL const FlowFunctions flow_functions;

#endif
