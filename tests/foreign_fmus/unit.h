/* What every FMU of this folder has: values by type, and the functions that functions.c calls.
 *
 * A unit defines FMU_GUID, the numbers of its values, HAS_STATE, and the three functions below, and includes
 * functions.c at its end. Value references count from 0 within each type.
 */
#ifndef UNIT_H
#define UNIT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"
#include "visibility.h"

#define MOST_VALUES 16
#define TEXT_LENGTH 256

typedef struct {
    double real[MOST_VALUES];
    int integer[MOST_VALUES];
    int boolean[MOST_VALUES];
    char text[MOST_VALUES][TEXT_LENGTH];
    double time;      /* of the last successful step, s */
    double hidden[4]; /* what the unit keeps and shows nobody */
    int final;        /* whether the step that is made will not be undone to a time before it */
    int ended;        /* whether the FMU has ended the run */
} Values;

typedef struct {
    Values values;
    char name[TEXT_LENGTH];
    fmi2CallbackLogger logger;
    fmi2ComponentEnvironment environment;
    double flushed;  /* no state of an earlier time will be set any more, s */
    int dead;        /* whether an error was fatal */
    int initialized; /* whether initialization mode was left */
} Unit;

/* Sets start values. */
static void start(Values *values);
/* Computes outputs from states, inputs and parameters. */
static void update(Values *values);
/* Advances from time by step; on anything but fmi2OK, `why` takes the reason. */
static fmi2Status advance(Values *values, double time, double step, char *why);

#endif
