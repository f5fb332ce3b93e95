/* Gives what it takes, in every type; and shows its parameters. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-feedthrough}"
#define HAS_STATE 0
#define REALS 6
#define INTEGERS 6
#define BOOLEANS 4
#define TEXTS 4

enum { REAL_IN, REAL_OUT, JUMPING_IN, JUMPING_OUT, REAL_PARAMETER, REAL_SHOWN };
enum { INTEGER_IN, INTEGER_OUT, INTEGER_PARAMETER, INTEGER_SHOWN, MODE_IN, MODE_OUT };
enum { IN, OUT, PARAMETER, SHOWN };

static void start(Values *values)
{
    values->real[REAL_PARAMETER] = 1.5;
    values->integer[INTEGER_PARAMETER] = 3;
    values->integer[MODE_IN] = 1;
    snprintf(values->text[IN], TEXT_LENGTH, "%s", "nothing");
    snprintf(values->text[PARAMETER], TEXT_LENGTH, "%s", "parameter");
}

static void update(Values *values)
{
    values->real[REAL_OUT] = values->real[REAL_IN];
    values->real[JUMPING_OUT] = values->real[JUMPING_IN];
    values->real[REAL_SHOWN] = values->real[REAL_PARAMETER];
    values->integer[INTEGER_OUT] = values->integer[INTEGER_IN];
    values->integer[INTEGER_SHOWN] = values->integer[INTEGER_PARAMETER];
    values->integer[MODE_OUT] = values->integer[MODE_IN];
    values->boolean[OUT] = values->boolean[IN];
    values->boolean[SHOWN] = values->boolean[PARAMETER];
    strcpy(values->text[OUT], values->text[IN]);
    strcpy(values->text[SHOWN], values->text[PARAMETER]);
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)values, (void)time, (void)step, (void)why;
    return fmi2OK;
}

#include "functions.c"
