/* What the steps and the equations, compiled for themselves, give to the rest of the unit. */
#ifndef MBSFMU_STEPS_H
#define MBSFMU_STEPS_H

#include "instance.h"

typedef struct {
    /* Advance over an interval without jumps of inputs; returns 0 with a reason. Nothing jumps before the horizon either, up
     * to which the last step may go where values inside it are known. */
    int (*advance)(Instance *, double begin_time, double end, double horizon);
    /* The values of all inputs at a time, where all events up to the state's `passed` have passed and no other. */
    void (*inputs_at)(const Instance *, double time, double *values);
    /* Their derivatives by time; NULL but for linearly implicit steps. Here whatever the solver is: steps for hosts that
     * integrate have another one than the unit that calls them. */
    void (*input_slopes_at)(const Instance *, double time, double *slopes);
    /* What was set, with what has a rate, some time after it was so. */
    void (*run_on)(const State *, double passed, double *values);
    /* The next time inside (begin, end) at which a followed signal jumps or bends; `otherwise` where there is none. */
    double (*next_event)(const Instance *, double begin, double end, double otherwise);
#if SOLVES_SADDLE
    /* Solve M a + Phi_z^T lambda = load, Phi_z a = turn for one right side at the arguments' values, in place; the
     * shortest solution where that is singular. `load` has the turn behind it. */
    void (*solve_saddle)(const Parts *, const double *mass, double near, double *load);
#endif
    /* Traced functions that are not for steps alone. */
    void (*closure)(const Parts *, double *violation, double *jacobian);
    void (*integral_rates)(const Parts *, double *rates);
#if RATES_BY_ACCELERATIONS
    void (*state_rates)(const Parts *, double *rates);
#endif
    void (*outputs)(const Parts *, double *outputs, double *violation);
    /* Let what the rule remembers jump from the state's rates to those of the arguments; forget it. */
    void (*restart_history)(Instance *);
    void (*forget_steps)(State *);
    /* Solve algebraic loops where the arguments are, and begin there the next time; returns 0 with a reason. */
    int (*follow_loops)(Instance *);
    /* Move references along where they have to change; the motion stays the same. Returns whether they move. */
    int (*change_references)(Instance *);
    /* Find what the formulation itself has to remember at the start of a run, where the arguments are; returns 0 with a
     * reason where it cannot start there. */
    int (*prepare)(Instance *);
#if OWN_MOTION
    /* Bring accelerations, multipliers and rates to the arguments' positions, velocities or momenta, and states. */
    void (*motion)(Instance *);
    /* Move the arguments' positions and velocities near the constraints onto these, where redundant ones contradict beside. */
    void (*close)(Instance *);
#endif
} StepFunctions;

#define step_functions NAMED(mbsfmu_step_functions)
extern INTERNAL const StepFunctions step_functions;

#if MODEL_EXCHANGE

/* -- the equations as somebody else's solver integrates them, y' = f(t, y), compiled as the steps are --------------- */

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

#endif
