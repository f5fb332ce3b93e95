/* A lag of first order as an FMU of FMI 1.0 for co-simulation, dx/dt = rate (u - x): exact for inputs that run straight. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "visibility.h"

#define OWN(function) lag_##function
#define GUID "{0d3c1a52-first-version}"

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;
typedef struct {
    void (*logger)(void *, const char *, Status, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, Status);
} Callbacks;

enum { X, U, RATE, X_START, REALS };
enum { HOLDS, HURRIES, FLAGS };
typedef struct {
    Callbacks callbacks;
    char name[64], text[64];
    double real[REALS], slope, reached;
    int steps, initialized;
    char flags[FLAGS];
} Lag;

static Status refuse(Lag *lag, Status status, const char *why, double number)
{
    lag->callbacks.logger(lag, lag->name, status, "steps", "%s: %g", why, number);
    return status;
}

EXPORT const char *OWN(fmiGetTypesPlatform)(void) { return "standard32"; }
EXPORT const char *OWN(fmiGetVersion)(void) { return "1.0"; }
EXPORT Status OWN(fmiSetDebugLogging)(void *lag, char on) { return (void)lag, (void)on, OK; }

EXPORT void *OWN(fmiInstantiateSlave)(const char *name, const char *guid, const char *location, const char *mime,
                                        double timeout, char visible, char interactive, Callbacks callbacks, char logs)
{
    (void)location, (void)mime, (void)timeout, (void)visible, (void)interactive, (void)logs;
    if (strcmp(guid, GUID) != 0) {
        callbacks.logger(NULL, name, ERROR, "start", "the description is that of %s", "another FMU");
        return NULL;
    }
    Lag *lag = callbacks.allocate(1, sizeof *lag);
    lag->callbacks = callbacks;
    lag->real[RATE] = lag->real[X_START] = 1.0;
    snprintf(lag->name, sizeof lag->name, "%s", name);
    snprintf(lag->text, sizeof lag->text, "%s", "lag");
    return lag;
}

EXPORT Status OWN(fmiInitializeSlave)(void *component, double start, char has_stop, double stop)
{
    Lag *lag = component;
    (void)has_stop, (void)stop;
    lag->real[X] = lag->real[X_START];
    lag->reached = start;
    lag->initialized = 1;
    return OK;
}

EXPORT Status OWN(fmiTerminateSlave)(void *lag) { return (void)lag, OK; }
EXPORT Status OWN(fmiResetSlave)(void *lag) { return (void)lag, ERROR; }
EXPORT void OWN(fmiFreeSlaveInstance)(void *lag) { ((Lag *)lag)->callbacks.release(lag); }

EXPORT Status OWN(fmiSetRealInputDerivatives)(void *lag, const unsigned references[], size_t count, const int orders[],
                                                const double values[])
{
    for (size_t i = 0; i < count; i++) {
        if (references[i] != U || orders[i] != 1)
            return refuse(lag, ERROR, "no such slope", references[i]);
        ((Lag *)lag)->slope = values[i];
    }
    return OK;
}

EXPORT Status OWN(fmiGetRealOutputDerivatives)(void *lag, const unsigned references[], size_t count, const int orders[],
                                                 double values[])
{
    (void)references, (void)count, (void)orders, (void)values;
    return refuse(lag, ERROR, "no slopes of outputs", 0.0);
}

EXPORT Status OWN(fmiDoStep)(void *component, double time, double step, char is_new)
{
    Lag *lag = component;
    const double u = lag->real[U], rate = lag->real[RATE] * (lag->flags[HURRIES] ? 2.0 : 1.0), slope = lag->slope;
    if (!is_new || !lag->initialized)
        return refuse(lag, ERROR, "a step that is made again", time);
    if (u > 100.0) {
        const double left = 1e-2 - fmod(time, 1e-2); /* it comes to the next hundredth of a second, and from there nowhere */
        lag->reached = left < step && left > 1e-9 && left < 1e-2 - 1e-9 ? time + left : time;
        return refuse(lag, DISCARD, "u is beyond 100", u);
    }
    if (!lag->flags[HOLDS]) /* x follows u - slope / rate, which runs straight */
        lag->real[X] = u + slope * step - slope / rate + (lag->real[X] - u + slope / rate) * exp(-rate * step);
    lag->steps++;
    lag->slope = 0.0;
    lag->reached = time + step;
    return OK;
}

EXPORT Status OWN(fmiCancelStep)(void *lag) { return (void)lag, ERROR; }
#define STATUS(kind, type)                                                                                             \
    EXPORT Status OWN(fmiGet##kind)(void *lag, int which, type *value) { return (void)lag, (void)which, (void)value, ERROR; }
STATUS(Status, Status)
STATUS(IntegerStatus, int)
STATUS(BooleanStatus, char)
STATUS(StringStatus, const char *)

EXPORT Status OWN(fmiGetRealStatus)(void *lag, int which, double *value)
{
    *value = ((Lag *)lag)->reached;
    return which == 2 ? OK : ERROR;
}

#define VALUES(Kind, type, count_of, place, read)                                                                      \
    EXPORT Status OWN(fmiGet##Kind)(void *component, const unsigned references[], size_t count, type values[])       \
    {                                                                                                                  \
        Lag *lag = component;                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (!lag->initialized || references[i] >= (count_of))                                                      \
                return refuse(lag, ERROR, "nothing to read", references[i]);                                           \
            values[i] = read;                                                                                          \
        }                                                                                                              \
        return OK;                                                                                                     \
    }                                                                                                                  \
    EXPORT Status OWN(fmiSet##Kind)(void *component, const unsigned references[], size_t count, const type values[]) \
    {                                                                                                                  \
        Lag *lag = component;                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (references[i] >= (count_of) || (lag->initialized && references[i] >= RATE))                            \
                return refuse(lag, ERROR, "nothing to set", references[i]);                                            \
            place;                                                                                                     \
        }                                                                                                              \
        return OK;                                                                                                     \
    }

typedef const char *Text;
VALUES(Real, double, REALS, lag->real[references[i]] = values[i], lag->real[references[i]])
VALUES(Integer, int, 1, lag->steps = values[i], lag->steps)
VALUES(Boolean, char, FLAGS, lag->flags[references[i]] = values[i], lag->flags[references[i]])
VALUES(String, Text, 1, snprintf(lag->text, sizeof lag->text, "%s", values[i]), lag->text)
