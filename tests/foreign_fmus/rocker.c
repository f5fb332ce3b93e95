/* A rod that swings about a fixed pivot in the plane, loaded by a force at its tip, which is held over a step. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-rocker}"
#define HAS_STATE 1
#define REALS 11
#define INTEGERS 0
#define BOOLEANS 0
#define TEXTS 0

enum { FX, FY, X, Y, VX, VY, ANGLE, RATE, MASS, LENGTH, PIVOT };

static const double GRAVITY = 9.81, LONGEST = 1e-4;

static void start(Values *values)
{
    values->real[MASS] = 1.0;
    values->real[LENGTH] = 1.0;
}

static void update(Values *values)
{
    double *real = values->real, length = real[LENGTH], sine = sin(real[ANGLE]), cosine = cos(real[ANGLE]);
    real[X] = real[PIVOT] + length * cosine;
    real[Y] = length * sine;
    real[VX] = -length * sine * real[RATE];
    real[VY] = length * cosine * real[RATE];
}

/* m l^2 / 3 angle'' = moment of the weight at the middle, and of the force at the tip */
static double acceleration(const double *real, double angle)
{
    double arm_x = real[LENGTH] * cos(angle), arm_y = real[LENGTH] * sin(angle);
    double moment = -0.5 * real[MASS] * GRAVITY * arm_x + arm_x * real[FY] - arm_y * real[FX];
    return 3.0 * moment / (real[MASS] * real[LENGTH] * real[LENGTH]);
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    double *real = values->real;
    int count = (int)ceil(step / LONGEST - 1e-6);
    double h = step / count;
    for (int i = 0; i < count; i++) { /* the classical Runge-Kutta-Nystroem method: the acceleration has no rate in it */
        double q = real[ANGLE], v = real[RATE];
        double a1 = acceleration(real, q);
        double a2 = acceleration(real, q + 0.5 * h * v + 0.125 * h * h * a1);
        double a3 = acceleration(real, q + h * v + 0.5 * h * h * a2);
        real[ANGLE] = q + h * v + h * h * (a1 + 2.0 * a2) / 6.0;
        real[RATE] = v + h * (a1 + 4.0 * a2 + a3) / 6.0;
    }
    update(values);
    return fmi2OK;
}

#include "functions.c"
