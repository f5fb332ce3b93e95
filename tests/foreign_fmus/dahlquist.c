/* Dahlquist's test equation with an input, dx/dt = rate (u - x): a lag of first order. Exact for an input that is held. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-dahlquist}"
#define HAS_STATE 1
#define REALS 4
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { X, U, RATE, X_START };

static void start(Values *values)
{
    values->real[RATE] = 1.0;
    values->real[X_START] = 1.0;
    values->hidden[0] = NAN; /* the state, once initialized */
}

static void update(Values *values)
{
    values->real[X] = isnan(values->hidden[0]) ? values->real[X_START] : values->hidden[0];
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    update(values);
    double u = values->real[U];
    values->hidden[0] = u + (values->real[X] - u) * exp(-values->real[RATE] * step);
    return fmi2OK;
}

#include "functions.c"
