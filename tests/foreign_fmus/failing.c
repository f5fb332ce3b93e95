/* A clock that refuses to go beyond a time: with fmi2Discard (2), fmi2Error (3) or fmi2Fatal (4). */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-failing}"
#define HAS_STATE 1
#define REALS 2
#define INTEGERS 1
#define BOOLEANS 0
#define TEXTS 0

enum { NOW, FAILURE_TIME };
enum { STATUS };

static void start(Values *values)
{
    values->real[FAILURE_TIME] = 0.5;
    values->integer[STATUS] = fmi2Error;
}

static void update(Values *values) { values->real[NOW] = values->time; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    if (time + step < values->real[FAILURE_TIME] + 1e-9)
        return fmi2OK;
    snprintf(why, TEXT_LENGTH, "it does not go beyond %g s", values->real[FAILURE_TIME]);
    return (fmi2Status)values->integer[STATUS];
}

#include "functions.c"
