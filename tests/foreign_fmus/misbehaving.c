/* A clock that, from a time on, does what takes a process down or keeps it for ever; counts how often it did a step. */
#include <signal.h>

#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-misbehaving}"
#define HAS_STATE 1
#define REALS 3
#define INTEGERS 2
#define BOOLEANS 0
#define TEXTS 0

enum { NOW, WHEN, IN };
enum { FAULT, PHASE };
enum { NOTHING, SEGMENTATION, ABORT, EXIT, HANG };
enum { STEP, READING, INITIALIZATION };

static void start(Values *values) { values->real[WHEN] = 0.5; }

static void misbehave(const Values *values)
{
    switch (values->integer[FAULT]) {
    case SEGMENTATION:
        raise(SIGSEGV);
        break;
    case ABORT:
        abort();
    case EXIT:
        exit(3);
    case HANG:
        for (volatile int forever = 1; forever;)
            ;
    }
}

static void update(Values *values)
{
    values->real[NOW] = values->time;
    int initialized = values->hidden[0] != 0.0;
    if (values->integer[PHASE] == INITIALIZATION && !initialized && values->integer[FAULT] != NOTHING)
        misbehave(values);
    values->hidden[0] = 1.0;
    if (values->integer[PHASE] == READING && values->time > values->real[WHEN] - 1e-9)
        misbehave(values);
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)step, (void)why;
    if (values->integer[PHASE] == STEP && time > values->real[WHEN] - 1e-9)
        misbehave(values);
    return fmi2OK;
}

#include "functions.c"
