/* A ramp that ends the run by itself where it reaches a height: it goes there, discards the step and says why. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-ending}"
#define HAS_STATE 1
#define REALS 2
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 1

enum { HEIGHT, HIGHEST };

static void start(Values *values) { values->real[HIGHEST] = 0.75; }

static void update(Values *values)
{
    values->real[HEIGHT] = values->time;
    snprintf(values->text[0], TEXT_LENGTH, "%s", values->ended ? "there" : "below");
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)why;
    if (time + step < values->real[HIGHEST])
        return fmi2OK;
    values->time = values->real[HIGHEST];
    values->ended = 1;
    return fmi2Discard;
}

#include "functions.c"
