/* A ball that falls, bounces, and rests once it is slow: every impact is met exactly, inside a communication step. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-bouncingball}"
#define HAS_STATE 1
#define REALS 5
#define INTEGERS 1
#define BOOLEANS 1
#define TEXTS 0

enum { HEIGHT, VELOCITY, GRAVITY, RESTITUTION, SLOWEST };
enum { BOUNCES };
enum { RESTING };

static void start(Values *values)
{
    values->real[HEIGHT] = 1.0;
    values->real[GRAVITY] = 9.81;
    values->real[RESTITUTION] = 0.7;
    values->real[SLOWEST] = 0.1;
}

static void update(Values *values) { (void)values; }

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    double *x = values->real, left = step, g = x[GRAVITY];
    while (left > 0.0 && !values->boolean[RESTING]) {
        double speed = sqrt(x[VELOCITY] * x[VELOCITY] + 2.0 * g * fmax(x[HEIGHT], 0.0)); /* at the impact */
        double flight = (x[VELOCITY] + speed) / g;
        if (flight > left) {
            x[HEIGHT] += left * (x[VELOCITY] - 0.5 * g * left);
            x[VELOCITY] -= g * left;
            break;
        }
        left -= flight;
        x[HEIGHT] = 0.0;
        x[VELOCITY] = x[RESTITUTION] * speed;
        values->integer[BOUNCES]++;
        if (x[VELOCITY] < x[SLOWEST]) {
            x[VELOCITY] = 0.0;
            values->boolean[RESTING] = 1;
        }
    }
    return fmi2OK;
}

#include "functions.c"
