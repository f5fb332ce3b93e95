/* Signals of every type over time: a sine in mV, a count, a switch and a word that change at each whole second. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-source}"
#define HAS_STATE 1
#define REALS 4
#define INTEGERS 1
#define BOOLEANS 1
#define TEXTS 1

enum { SINE, AMPLITUDE, FREQUENCY, STAIRS };

static void start(Values *values)
{
    values->real[AMPLITUDE] = 1000.0;
    values->real[FREQUENCY] = 1.0;
}

static void update(Values *values)
{
    static const char *const words[3] = {"zero", "one", "two"};
    int second = (int)floor(values->time + 1e-9);
    values->real[SINE] = values->real[AMPLITUDE] * sin(6.283185307179586 * values->real[FREQUENCY] * values->time);
    values->real[STAIRS] = 10.0 * second;
    values->integer[0] = 1000000007 + second;
    values->boolean[0] = second % 2;
    snprintf(values->text[0], TEXT_LENGTH, "%s", second == 7 ? "caf\xe9" : words[second % 3]); /* Latin-1 in the seventh */
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)values, (void)time, (void)step, (void)why;
    return fmi2OK;
}

#include "functions.c"
