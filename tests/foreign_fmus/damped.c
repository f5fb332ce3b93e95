/* A mass of 1 kg with a spring and a damper, x'' = force - stiffness x - damping x', that lists its states and gives
 * their derivatives though it is for co-simulation; Euler's steps of at most 0.1 ms. Lengths are in mm. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-damped}"
#define HAS_STATE 0
#define GIVES_DERIVATIVES
#define REALS 7
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { X, V, RATE_X, RATE_V, FORCE, STIFFNESS, DAMPING };

static void start(Values *values)
{
    values->real[X] = 100.0;
    values->real[STIFFNESS] = 40.0;
    values->real[DAMPING] = 0.5;
}

static void update(Values *values)
{
    double *x = values->real;
    x[RATE_X] = x[V];
    x[RATE_V] = 1e3 * x[FORCE] - x[STIFFNESS] * x[X] - x[DAMPING] * x[V];
}

/* Derivative of one variable by a state or an input. */
static double slope(const Values *values, fmi2ValueReference unknown, fmi2ValueReference known)
{
    const double *x = values->real;
    if (unknown == RATE_X)
        return known == V;
    if (unknown == RATE_V)
        return known == X ? -x[STIFFNESS] : known == V ? -x[DAMPING] : known == FORCE ? 1e3 : 0.0;
    return unknown == known;
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    int count = (int)ceil(step / 1e-4 - 1e-6);
    for (int n = 0; n < count; n++) {
        update(values);
        values->real[X] += step / count * values->real[RATE_X];
        values->real[V] += step / count * values->real[RATE_V];
    }
    return fmi2OK;
}

#include "functions.c"
