/* What every FMU of FMI 3.0 of this folder has: variables by type, and the functions that functions3.c calls.
 *
 * A unit defines UNIT_TOKEN, HAS_EVENT_MODE, its variables in `variables`, whose places are the value references, and
 * the functions below, and includes functions3.c at its end. Calls in a wrong mode are refused. One that has sizes
 * defines SIZE_OF(values, reference), the present number of values of a variable, and `configured`.
 */
#ifndef UNIT3_H
#define UNIT3_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT3 __declspec(dllexport)
#else
#define EXPORT3 __attribute__((visibility("default")))
#endif

#define MOST_VALUES 64
#define TEXT_LENGTH 64

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef enum { FLOAT32, FLOAT64, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, BOOLEAN, STRING } Type;
typedef enum { INSTANTIATED, INITIALIZATION, STEP, EVENT, TERMINATED, CONFIGURATION } Mode;
typedef enum { NEITHER, INPUT, DISCRETE_INPUT, SETTABLE, STRUCTURAL } Use;

typedef struct {
    Type type;
    size_t first, size; /* among the values of its type */
    Use use;
} Variable;

typedef struct {
    float float32[MOST_VALUES];
    double float64[MOST_VALUES];
    int8_t int8[MOST_VALUES];
    uint8_t uint8[MOST_VALUES];
    int16_t int16[MOST_VALUES];
    uint16_t uint16[MOST_VALUES];
    int32_t int32[MOST_VALUES];
    uint32_t uint32[MOST_VALUES];
    int64_t int64[MOST_VALUES];
    uint64_t uint64[MOST_VALUES];
    bool boolean[MOST_VALUES];
    char string[MOST_VALUES][TEXT_LENGTH];
    double time;       /* where it is, s */
    double next_event; /* s */
    double hidden[4];
} Values;

typedef void (*Logger)(void *environment, Status status, const char *category, const char *message);

typedef struct {
    Values values;
    Mode mode;
    bool uses_events;
    Logger logger;
    void *environment;
    const char *texts[MOST_VALUES];
} Unit;

/* What a step has led to. */
typedef struct {
    bool event, ends;
    double reached;
} Outcome;

/* Sets start values; next_event is infinite. */
static void start(Values *values);
/* Computes outputs. */
static void update(Values *values);
/* Advances to a time, or to an event before it. */
static Status advance(Values *values, double to, Outcome *outcome);
/* Handles an event. */
static void handle(Values *values);
#ifdef SIZE_OF
/* Takes structural parameters at the end of configuration mode; the reason why it does not otherwise. */
static const char *configured(Values *values);
#endif
/* Derivatives of outputs by inputs: of values of two variables. */
static double derivative(const Values *values, size_t unknown, size_t unknown_place, size_t known, size_t known_place);

#endif
