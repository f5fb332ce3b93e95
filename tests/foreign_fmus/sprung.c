/* A mass of 1 kg on two springs, x'' = -ground x - spring (x - u): the other end of the second one is moved. The motion
 * is exact for held positions u. It takes steps of one length only where `only` is one, and shakes its output by
 * `shake` in every third step; it tells as whole numbers on which side of zero it is. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-sprung}"
#define HAS_STATE 1
#define REALS 7
#define INTEGERS 1
#define BOOLEANS 1
#define TEXTS 0

enum { X, V, U, GROUND, SPRING, ONLY, SHAKE };
enum { POSITION, STEPS };

static void start(Values *values)
{
    values->real[GROUND] = 30.0;
    values->real[SPRING] = 10.0;
}

static void update(Values *values)
{
    if (values->hidden[STEPS] == 0.0)
        values->hidden[POSITION] = values->real[X];
    values->integer[0] = values->hidden[POSITION] > 0.0 ? 1 : -1;
    values->boolean[0] = values->hidden[POSITION] > 0.0;
    values->real[X] = values->hidden[POSITION] + (fmod(values->hidden[STEPS], 3.0) == 1.0 ? values->real[SHAKE] : 0.0);
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    double *x = values->real, only = x[ONLY];
    (void)time;
    if (only > 0.0 && fabs(step - only) > 1e-9) {
        snprintf(why, TEXT_LENGTH, "a step of %g s is refused: it takes steps of %g s only", step, only);
        return fmi2Error;
    }
    double omega = sqrt(x[GROUND] + x[SPRING]), rest = x[SPRING] * x[U] / (omega * omega);
    double off = values->hidden[POSITION] - rest, speed = x[V];
    values->hidden[POSITION] = rest + off * cos(omega * step) + speed / omega * sin(omega * step);
    x[V] = speed * cos(omega * step) - off * omega * sin(omega * step);
    values->hidden[STEPS] += 1.0;
    return fmi2OK;
}

#include "functions.c"
