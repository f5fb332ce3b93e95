/* A clock that discards steps over a wall in time, and says that it has made the part up to it. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-halting}"
#define HAS_STATE 1
#define REALS 2
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { NOW, WALL };

static void start(Values *values) { values->real[WALL] = 0.3337; }
static void update(Values *values) { values->real[NOW] = values->time; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    double wall = values->real[WALL];
    if (time > wall - 1e-9 || time + step < wall + 1e-9)
        return fmi2OK;
    values->time = wall;
    snprintf(why, TEXT_LENGTH, "there is a wall at %g s", wall);
    return fmi2Discard;
}

#include "functions.c"
