/* A lag of a second that stands still for good once a step may be undone to a time before it, as a real unit does. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-stubborn}"
#define HAS_STATE 1
#define REALS 2
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { U, X };

static void start(Values *values) { (void)values; }
static void update(Values *values) { (void)values; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    if (!values->final)
        values->hidden[0] = 1.0;
    if (values->hidden[0] == 0.0)
        values->real[X] += (values->real[U] - values->real[X]) * (1.0 - exp(-step));
    return fmi2OK;
}

#include "functions.c"
