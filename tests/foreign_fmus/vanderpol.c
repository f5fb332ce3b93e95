/* Van der Pol's oscillator, x'' = mu (1 - x^2) x' - x, with classical Runge-Kutta steps of at most 1 ms. */
#include "unit.h"

#define FMU_GUID "{6f0f2f1e-4c29-4d6e-9a39-vanderpol}"
#define HAS_STATE 0
#define REALS 3
#define INTEGERS 1
#define BOOLEANS 0
#define TEXTS 0

enum { X, V, MU };
enum { EVALUATIONS };

static void start(Values *values)
{
    values->real[X] = 2.0;
    values->real[V] = 0.0;
    values->real[MU] = 1.0;
}

static void update(Values *values) { (void)values; }

static void rates(Values *values, const double at[2], double out[2])
{
    out[0] = at[1];
    out[1] = values->real[MU] * (1.0 - at[0] * at[0]) * at[1] - at[0];
    values->integer[EVALUATIONS]++;
}

static fmi2Status advance(Values *values, double time, double step, char *why)
{
    (void)time, (void)why;
    int count = (int)ceil(step / 1e-3 - 1e-6);
    double h = step / count;
    double *x = values->real;
    for (int n = 0; n < count; n++) {
        static const double weights[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, nodes[4] = {0.0, 0.5, 0.5, 1.0};
        double sum[2] = {0.0, 0.0}, k[2] = {0.0, 0.0};
        for (int stage = 0; stage < 4; stage++) {
            double at[2] = {x[X] + h * nodes[stage] * k[0], x[V] + h * nodes[stage] * k[1]};
            rates(values, at, k);
            sum[0] += weights[stage] * k[0];
            sum[1] += weights[stage] * k[1];
        }
        x[X] += h * sum[0];
        x[V] += h * sum[1];
    }
    return fmi2OK;
}

#include "functions.c"
