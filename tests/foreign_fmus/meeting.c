/* A clock whose first step waits for that of another one: each leaves a file, and looks for the file of the other. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-meeting}"
#define HAS_STATE 1
#define REALS 1
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 2

enum { NOW };
enum { OWN, OTHER };
enum { PATIENCE = 2000 }; /* in ms */

static void start(Values *values) { (void)values; }
static void update(Values *values) { values->real[NOW] = values->time; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)step;
    if (!values->text[OWN][0])
        return fmi2OK;
    FILE *own = fopen(values->text[OWN], "w");
    if (own) fclose(own);
    for (int waited = 0; waited < PATIENCE; ++waited) {
        FILE *other = fopen(values->text[OTHER], "r");
        if (other) {
            fclose(other);
            return fmi2OK;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    snprintf(why, TEXT_LENGTH, "nobody came");
    return fmi2Error;
}

#include "functions.c"
