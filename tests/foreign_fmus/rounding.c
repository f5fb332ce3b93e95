/* Rounds upward from its first step on, and shows how numbers were rounded when it was called. */
#include <fenv.h>

#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-rounding}"
#define HAS_STATE 1
#define REALS 2
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { FOUND, THIRD };

static void start(Values *values) { values->real[FOUND] = fegetround(); }
static void update(Values *values) { (void)values; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    volatile double one = 1.0;
    (void)time, (void)step, (void)why;
    values->real[FOUND] = fegetround();
    values->real[THIRD] = one / 3.0;
    fesetround(FE_UPWARD);
    return fmi2OK;
}

#include "functions.c"
