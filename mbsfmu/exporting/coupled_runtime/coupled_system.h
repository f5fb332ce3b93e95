/* Coupled FMUs as one system: what the FMU around them asks of it. Functions that return int give 0 on failure, and
 * `reason_of` then says why, in one sentence. */
#ifndef MBSFMU_COUPLED_SYSTEM_H
#define MBSFMU_COUPLED_SYSTEM_H

#include <stddef.h>

#include "visibility.h"

typedef struct System System;

/* Told what a component warns of, or remarks on the run. */
typedef void (*Warned)(void *environment, const char *sentence, int is_remark);

/* The components loaded and instantiated; NULL where there is no memory. `is_whole` tells whether all of them are. */
INTERNAL System *create_system(Warned told, void *environment, const char *resources);
INTERNAL int is_whole(const System *system);
/* Whether it is whole and no component has failed. */
INTERNAL int is_sound(System *system);
INTERNAL void destroy_system(System *system);

INTERNAL int begin_initialization(System *system, double start, const double *stop);
INTERNAL int end_initialization(System *system);
INTERNAL int terminate_system(System *system);

/* Set parameters and inputs, all or none, and get any value; `variable` counts those of the description. */
INTERNAL int set_values(System *system, const unsigned *variables, size_t count, const double *values);
INTERNAL int get_value(System *system, unsigned variable, double *value);

/* Make communication steps to a time in s. */
INTERNAL int advance_system(System *system, double end);
/* Extrapolate anew: what was known before a jump says nothing about after it. */
INTERNAL void restart_history(System *system);
INTERNAL double time_of_system(const System *system);
INTERNAL double step_of_system(const System *system); /* communication step in s */
INTERNAL const char *reason_of(const System *system);

INTERNAL int save_system(System *system, void **saved);
INTERNAL int restore_system(System *system, const void *saved);
INTERNAL void release_saved(void *saved);

#endif
