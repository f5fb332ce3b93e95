/* A unit as it is whatever standard it is spoken to in: its modes, values, steps, derivatives and saved states.
 *
 * A layer over it has the words of one version of one standard: its types and status values, its value references and
 * what they are called, its arrays, its logger, and functions that importers must find. It sees this header alone. What
 * a host gives it checks first: here pointers point to what they should, and indices are below `variables`. */
#ifndef MBSFMU_UNIT_H
#define MBSFMU_UNIT_H

#include <stddef.h>

#include "interfaces.h"
#include "visibility.h"

/* Updates of sampled blocks have the instants of the FMU itself, those of a clock where the host has event mode
   (PERIODIC_CLOCKS), or happen whenever the host sets a clock (TRIGGERED_CLOCKS). */
#define CLOCKS (PERIODIC_CLOCKS || TRIGGERED_CLOCKS)

typedef struct Instance Instance;

/* What becomes of a call; DISCARDED: a step that cannot be made, after which the instance is as it was before.
 * NOTED: of a sentence alone, that something happened in the run which users should know of. */
typedef enum { DONE, DONE_WITH_WARNING, DISCARDED, REFUSED, NOTED } Status;

/* What a host wants of a step beside its end; all zero, or NULL instead of it, where it wants nothing. */
typedef struct {
    int ends_at_events;             /* the step may end where a signal jumps or bends, or a discrete state is updated */
    int holds_events;               /* what happens where the step ends is left to `pass_events` */
    int stays;                      /* the instance will not be set back to before the beginning of the step */
    /* Told before each internal step of the time where it ends, to which inputs may be led, and after it of the time where
     * the instance is; gives the time up to which the step is to go on. NULL where nobody is told. */
    void (*begins)(void *host, double end);
    double (*ended)(void *host, double time);
    void *host;
} Wishes;

/* Told what the instance has to say, one sentence at a time; a call that is not DONE has said why. */
typedef void (*Logger)(void *environment, Status status, const char *sentence);

typedef struct {
    const char *identity;           /* what the FMU does and has: equal for equal ones, and for no others */
    unsigned variables;             /* how many; all values are numbers, and variables go by index */
    size_t saved_size;              /* of a saved state, in bytes */

    /* An instance at its start values; NULL where there is none. The resources are a URI or a path, as the host gives it. */
    Instance *(*create)(Logger, void *environment, const char *resources);
    void (*destroy)(Instance *);
    Status (*reset)(Instance *);

    /* From created or reset to initializing, to stepping, from there to events and back, to terminated. Stop time and
     * tolerance may be NULL. */
    Status (*set_up)(Instance *, double start, const double *stop, const double *tolerance);
    Status (*enter_initialization)(Instance *);
    Status (*exit_initialization)(Instance *);
    Status (*enter_events)(Instance *);
    Status (*exit_events)(Instance *);
    Status (*terminate)(Instance *);

    /* Values fit the parameters and inputs of now. Of those that are set all are taken, or none. */
    Status (*get)(Instance *, const unsigned *variables, size_t count, double *values);
    Status (*set)(Instance *, const unsigned *variables, size_t count, const double *values);

    /* Derivatives by time: of inputs during the next step, and of outputs now. */
    Status (*set_slopes)(Instance *, const unsigned *inputs, size_t count, const double *slopes);
    /* Before an internal step, let inputs have values where it ends. */
    Status (*lead)(Instance *, const unsigned *inputs, size_t count, const double *values, double end);
    Status (*get_rates)(Instance *, const unsigned *outputs, size_t count, double *rates);
    /* Derivatives of unknowns along a direction of knowns: of the start while initializing, else at the time. */
    Status (*get_derivatives)(
        Instance *, const unsigned *unknowns, size_t unknown_count, const unsigned *knowns, size_t known_count,
        const double *direction, double *values
    );

    /* A step from a time by a length; afterwards the time where the instance is, and what became of its last step. */
    Status (*step)(Instance *, double time, double length, const Wishes *);
    double (*time)(const Instance *);
    Status (*last_step)(const Instance *);
    /* Whether events were held where the last step has ended. At events: let them happen; tells whether there were some,
     * and the time of the next one, DBL_MAX where there is none. */
    int (*is_at_event)(const Instance *);
    Status (*pass_events)(Instance *, int *some, double *next);

#if CLOCKS
    /* Clocks of sampled blocks, by number. From now on the host makes their updates: at events it sets a clock, and the
     * update is made with the next `pass_events`. Interval and shift in s are those of periodic clocks. */
    void (*follow_clocks)(Instance *);
    int (*has_clock)(unsigned clock);
    Status (*set_clock)(Instance *, unsigned clock, int ticks);
    int (*is_ticking)(const Instance *, unsigned clock);
    double (*interval_of)(unsigned clock);
    double (*shift_of)(unsigned clock);
#endif

    /* The whole state, in memory of its own: `saved` points to NULL or to one that is written anew. Restoring refuses
     * what is no state of this very unit, and what no instance can be in. */
    Status (*save)(Instance *, void **saved);
    Status (*restore)(Instance *, const void *saved);
    void (*release)(void *saved);
    Status (*serialize)(Instance *, const void *saved, char *bytes, size_t size);
    Status (*deserialize)(Instance *, const char *bytes, size_t size, void **saved);
} UnitFunctions;

#define fmu_functions NAMED(mbsfmu_unit_functions)
extern INTERNAL const UnitFunctions fmu_functions;

#if MODEL_EXCHANGE

/* What the solver of a host has to know after events: whether there were some, whether the continuous states are others and
 * have other magnitudes, and the time of the next event, DBL_MAX where there is none. Values of states always count as
 * changed: fmusim starts its solver anew where they do and nowhere else, also where only rates have jumped. */
typedef struct {
    int some, nominals_changed;
    double next;
} Updated;

/* An instance whose continuous states the host integrates. It comes from initialization to events, from these to continuous
 * time and back. */
typedef struct {
    size_t states, indicators;      /* how many there are */
    Instance *(*create)(Logger, void *environment);
    /* At events: as `pass_events`, with what becomes of the states. */
    Status (*update)(Instance *, Updated *);
    Status (*enter_continuous_time)(Instance *);
    Status (*enter_events)(Instance *);
    /* In continuous time: a point, which may be a trial, and one that a step has led to; tells whether events wait there. */
    Status (*set_time)(Instance *, double time);
    Status (*set_states)(Instance *, const double *values, size_t count);
    Status (*complete_step)(Instance *, int *events);
    /* At the point. */
    Status (*get_states)(Instance *, double *values, size_t count);
    Status (*get_rates)(Instance *, double *values, size_t count);
    Status (*get_nominals)(Instance *, double *values, size_t count);
    Status (*get_indicators)(Instance *, double *values, size_t count);
} ExchangeFunctions;

#define exchange_functions NAMED(mbsfmu_exchange_functions)
extern INTERNAL const ExchangeFunctions exchange_functions;

#endif

#endif
