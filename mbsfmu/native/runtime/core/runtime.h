/* What the runtime and the generated model share. The generated model.h defines the sizes before it includes this. */
#ifndef MBSFMU_RUNTIME_H
#define MBSFMU_RUNTIME_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same of sizes that a compiler must know. */
#define MOST(a, b) ((a) > (b) ? (a) : (b))

#include "generated.h"
#include "visibility.h"
#if WORK
#include "tables.h"
#endif

/* C has no arrays of length zero. */
#define ROOM(size) ((size) > 0 ? (size) : 1)

/* The arguments of all traced functions, by the generated list. Matrices are stored column by column. */
typedef struct {
#define FIELD(name, size) double *name;
    ARGUMENTS(FIELD)
#undef FIELD
    /* Where a step begins: the arrays of the state. */
#define FIELD(name, size) double *begun_##name;
    STATE_ARRAYS(FIELD)
#undef FIELD
} Parts;

#include "scratch.h"

/* A system that has to be put together at the start: the whole, or a part of it that is balanced alone. */
typedef struct {
    int coordinates, states, inputs, constraints, aligned;
    int first_parameter;            /* where its parameters stand among those of the whole */
    const char *name;
    const char *const *constraint_names, *const *aligned_names, *const *acceleration_names, *const *acceleration_units;
    const int *written_coordinates, *written_velocities; /* whether the model has their start values, zeros too */
    void (*start)(const Parts *, double *coordinates, double *velocities, double *states);
    void (*all_closure)(const Parts *, double *violation, double *jacobian, double *drifts);
    /* 1 - cos of the turns that closed loops leave at zero or half a turn, and its derivatives; NULL where there are none. */
    void (*misaligned)(const Parts *, double *misalignment, double *jacobian);
    /* Of a part that is balanced: -Q without motion, and its changes by the inputs that balance, column by column. */
    void (*standing)(const Parts *, double *rest, double *by_forces);
    void (*equilibrium)(const Parts *, double *mass, double *rest, double *rates, double *by_inputs); /* unrolled code */
    /* In loops: what loads in the place of the momenta begin in the open tree, and changes of -Q + Phi_z^T lambda. */
    void (*freed)(const Parts *, double *first_motion);
    void (*standing_change)(const Parts *, double *change);
    /* Changes along the directions d_...: of loop equations, their first and second rate, the equations of motion with
     * multipliers, outputs, integrals, and of start values. */
    void (*variation)(
        const Parts *, double *closure, double *rate, double *acceleration, double *balance, double *outputs,
        double *integrals, double *coordinates, double *velocities, double *states
    );
    int balances;                   /* calculated parameters: forces that keep it at rest */
    const int *balance_inputs;
    const int *whole_inputs;        /* indices of its inputs among those of the whole; -1 where a connection drives one */
    int first_calculated;
} Assembly;

/* A calculated parameter that is a parameter of another part. */
typedef struct {
    int calculated, parameter;
} Feed;

/* What must hold between two parameters. */
typedef struct {
    int smaller, greater;
} Ordering;

/* Discrete states that are updated at the instants offset + k sample_time, k = 0, 1, ...; reason ends the message on an
 * update that is not finite. */
typedef struct {
    const char *owner;
    int first, count;
    double sample_time, offset;
    const char *reason;
    int has_clock;                  /* whether it is a block's, whose updates a host can make by a clock */
} Sampling;

/* A coordinate or velocity of the start, for messages. */
typedef struct {
    const char *name, *unit;
} StartVariable;

/* A body whose inertia tensor the parameters decide; a rod may have a principal moment of zero. */
typedef struct {
    const char *body;
    int rod;
} Tensor;

/* The energies of a mechanism, or of a circuit, which has no kinetic one (-1): among outputs, and among integrals; the
 * name is that of the drift, and scale is the usual magnitude of these energies in J. */
typedef struct {
    const char *name;
    int drift, kinetic, potential, work, dissipated;
    double scale;
} Energies;

typedef enum {
    INPUT, COORDINATE, VELOCITY, ACCELERATION, STATE, HELD, INTEGRAL, OUTPUT, REACTION, VIOLATION, PARAMETER, CALCULATED,
    OF_SOLVER, STEP_SIZE, NEXT_EVENT, ERROR_SHARE, CONTINUOUS_STATE, DERIVATIVE,
    INDICATOR
} Kind;

/* A factor of a condition, of what has this index among its kind. */
typedef struct {
    Kind kind;
    int index;
    double factor;
} Weight;

/* What users of a run should know of where the sum of `count` weighted values is beyond the bound, and the sentence before and
 * behind the time; it is doubtful where a real machine would hardly run like this. */
typedef struct {
    const char *before_time, *after_time;
    int doubtful, first, count;
    double bound;
} Condition;

typedef enum { SIGNAL_STEPS, SIGNAL_LINEAR, SIGNAL_SINE, SIGNAL_POLYNOMIAL } SignalKind;

/* The signal that an input follows until it is set; `values` has the coefficients of each piece of polynomials, from that
 * of 1 to that of the highest degree. */
typedef struct {
    int input;
    SignalKind kind;
    int count;                      /* of its times */
    const double *times, *values;   /* events; values at them, or offset, amplitude, phase, and factors of t and t² */
    double initial;
} Signal;

/* A variable; its value reference is its index. A bound that is not there is DBL_MAX. */
typedef struct {
    Kind kind;
    int index;
    double start, minimum, maximum;
    const char *name, *unit;
    int settable, tunable;          /* set at all; parameters that may be set between steps */
} Variable;

#endif
