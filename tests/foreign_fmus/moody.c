/* Gives what it takes, of every type but text; from a time on, one of its functions has a status of its own. */
#include <signal.h>

#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-moody}"
#define HAS_STATE 0
#define REALS 4
#define INTEGERS 6
#define BOOLEANS 3
#define TEXTS 0

enum { REAL_IN, REAL_OUT, WHEN, GAIN };
enum { INTEGER_IN, INTEGER_OUT, STATUS, MODE_IN, MODE_OUT, FUNCTION };
enum { BOOLEAN_IN, BOOLEAN_OUT, TALKS };
enum { NONE, DO_STEP, GET_REAL, SET_REAL, GET_INTEGER, SET_BOOLEAN, INTERRUPT };

static const char *const FUNCTIONS[] = {"", "fmi2DoStep", "fmi2GetReal", "fmi2SetReal", "fmi2GetInteger", "fmi2SetBoolean", ""};

static fmi2Status mood(const Unit *unit, const char *function)
{
    const Values *values = &unit->values;
    int is_time = values->time > values->real[WHEN] - 1e-9;
    return is_time && strcmp(FUNCTIONS[values->integer[FUNCTION]], function) == 0 ? (fmi2Status)values->integer[STATUS]
                                                                                  : fmi2OK;
}
#define MOOD mood

static void start(Values *values)
{
    values->real[WHEN] = 0.5;
    values->real[GAIN] = 1.0;
    values->integer[STATUS] = fmi2Error;
    values->integer[MODE_IN] = 1;
}

static void update(Values *values)
{
    values->real[REAL_OUT] = values->real[GAIN] * values->real[REAL_IN];
    values->integer[INTEGER_OUT] = values->integer[INTEGER_IN] + 1;
    values->integer[MODE_OUT] = values->integer[MODE_IN];
    values->boolean[BOOLEAN_OUT] = !values->boolean[BOOLEAN_IN];
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    if (values->integer[FUNCTION] == INTERRUPT && values->hidden[0] == 0.0 && time + step > values->real[WHEN]) {
        values->hidden[0] = 1.0;
        raise(SIGINT);
    }
    snprintf(why, TEXT_LENGTH, "the step from %g s", time);
    if (values->integer[FUNCTION] == DO_STEP && time > values->real[WHEN] - 1e-9)
        return (fmi2Status)values->integer[STATUS];
    return values->boolean[TALKS] ? fmi2Warning : fmi2OK;
}

#include "functions.c"
