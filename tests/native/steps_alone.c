/* Newton's iteration of mbsfmu/stepping/newton.py in C for A x + c x³ = b, one machine or LANES of them, called from Python.
 * Iteration matrices are diagonals, so that Python makes the same. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ROOM(size) ((size) > 0 ? (size) : 1)
#define UNKNOWNS 4
#define ALL_UNKNOWNS 4
#define COORDINATES 3
#define STATES 1
#ifndef MOST_INCREMENTS
#define MOST_INCREMENTS 0
#endif
#define REFRESH_COST 2.5
#define REMAINING 1e-3
#define HEAVIEST 1e5
#include "constants.h"

static const double unknown_nominals[] = {1.0, 0.5, 2.0, 1e-3}, unknown_tolerances[] = {1e-8, 1e-9, 1e-8, 1e-7};

/* What a machine is: numbers that Python gives in this order. `reuses`: it begins with an inverse of an earlier step. */
typedef struct {
    double a[16], c[4], b[4], guess[4], kept[4], rate, reuses, velocity, fails_at, not_finite_at, singular_at;
} Data;

/* What it finds. */
typedef struct {
    double solved, count, matrices, evaluations, evaluated, increments, rate, spent, unconverged, unknowns[4];
} Found;

static double larger(double a, double b) { return a > b ? a : b; }
static int is_finite(double value) { return value - value == 0.0; }

static double residual_of(const Data *data, const double *x, int k) {
    double sum = 0.0;
    for (int j = 0; j < UNKNOWNS; j++) sum += data->a[4 * k + j] * x[j];
    return sum + data->c[k] * (x[k] * x[k] * x[k]) - data->b[k];
}

static double diagonal_of(const Data *data, double x, int k) { return data->a[5 * k] + 3.0 * data->c[k] * (x * x); }

#ifndef LANES

typedef struct {
    struct { double coordinates[COORDINATES], velocities[COORDINATES]; } state;
    const Data *data;
    double kept[UNKNOWNS], made[UNKNOWNS], at[UNKNOWNS];
    int evaluations, matrices;
    char reason[512];
} Instance;

typedef struct {
    double guess[UNKNOWNS];
} Problem;

#include "newton.h"

static int fail(Instance *instance, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(instance->reason, sizeof instance->reason, format, arguments);
    va_end(arguments);
    return 0;
}

static int loops_hold(Instance *instance) { return instance != NULL; }
static const char *unknown_name(const Instance *instance, int i) { return instance ? &"p\0q\0r\0s"[2 * i] : ""; }

static void begin(Instance *instance, Problem *problem, double step) {
    (void)step;
    memcpy(problem->guess, instance->data->guess, sizeof problem->guess);
}

static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    (void)problem;
    instance->evaluations++;
    if (instance->evaluations == instance->data->fails_at) return fail(instance, "a loop is open");
    for (int k = 0; k < UNKNOWNS; k++) residual[k] = residual_of(instance->data, unknowns, k);
    if (instance->evaluations == instance->data->not_finite_at) residual[2] = NAN;
    memcpy(instance->at, unknowns, sizeof instance->at);
    return 1;
}

static int make_matrix(Instance *instance, Iteration *iteration) {
    if (++instance->matrices == instance->data->singular_at) return 0;
    iteration->inverse = instance->made;
    for (int k = 0; k < UNKNOWNS; k++) instance->made[k] = 1.0 / diagonal_of(instance->data, instance->at[k], k);
    return 1;
}

static void solve_matrix(Instance *instance, Iteration *iteration) {
    (void)instance;
    for (int k = 0; k < UNKNOWNS; k++) iteration->increment[k] = iteration->inverse[k] * iteration->residual[k];
}

static void reuse_iteration_matrix(Instance *instance, double step, Iteration *iteration) {
    (void)step;
    iteration->own = instance->data->reuses == 0.0;
    iteration->rate = instance->data->rate;
    memcpy(instance->kept, instance->data->kept, sizeof instance->kept);
    iteration->inverse = instance->kept;
}

#include "newton.c"

void solve(const Data *data, Found *found, char *reason) {
    Instance instance = {.data = data};
    Problem problem;
    Iteration iteration = {0};
    for (int j = 0; j < COORDINATES; j++) instance.state.velocities[j] = data->velocity;
    const int solved = newton(&instance, &problem, 1e-3, &iteration);
    *found = (Found){
        solved, iteration.count, iteration.iteration_matrices, iteration.evaluations, iteration.evaluated,
        iteration.increments, iteration.rate, iteration.spent, iteration.unconverged, {0}
    };
    memcpy(found->unknowns, iteration.unknowns, sizeof found->unknowns);
    memcpy(reason, instance.reason, sizeof instance.reason);
}

#else

#include "lanes.h"

typedef struct {
    struct { Lanes coordinates[COORDINATES], velocities[COORDINATES]; } state;
    const Data *data;
    Lanes kept[UNKNOWNS], at[UNKNOWNS];
    int evaluations, matrices;
} Group;

typedef struct {
    Lanes guess[UNKNOWNS];
    Mask taking_part;
} Problem;

#include "lane_newton.h"

static void begin(Group *group, Problem *problem, Lanes step, Mask on) {
    (void)step;
    problem->taking_part |= on;
    for (int lane = 0; lane < LANES; lane++) {
        for (int k = 0; k < UNKNOWNS; k++) problem->guess[k][lane] = group->data[lane].guess[k];
    }
}

static Mask evaluate(Group *group, Problem *problem, const Lanes *unknowns, Lanes *residual, Mask on) {
    group->evaluations++;
    for (int lane = 0; lane < LANES; lane++) {
        const Data *data = &group->data[lane];
        double x[UNKNOWNS];
        for (int k = 0; k < UNKNOWNS; k++) x[k] = unknowns[k][lane];
        if (group->evaluations == data->fails_at) problem->taking_part[lane] = 0;
        for (int k = 0; k < UNKNOWNS; k++) residual[k][lane] = residual_of(data, x, k);
        if (group->evaluations == data->not_finite_at) residual[2][lane] = NAN;
    }
    memcpy(group->at, unknowns, sizeof group->at);
    return on & problem->taking_part;
}

static Mask make_matrix(Group *group, Iteration *iteration, Mask on) {
    group->matrices++;
    for (int lane = 0; lane < LANES; lane++) {
        const Data *data = &group->data[lane];
        if (group->matrices == data->singular_at) on[lane] = 0;
        for (int k = 0; k < UNKNOWNS; k++) iteration->inverse[k][lane] = 1.0 / diagonal_of(data, group->at[k][lane], k);
    }
    return on;
}

static void solve_matrix(Group *group, Iteration *iteration, Mask on) {
    (void)group;
    (void)on;
    for (int k = 0; k < UNKNOWNS; k++) iteration->increment[k] = iteration->inverse[k] * iteration->residual[k];
}

static void reuse_iteration_matrix(Group *group, Lanes step, Iteration *iteration, Mask on) {
    (void)step;
    (void)on;
    iteration->own = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const Data *data = &group->data[lane];
        iteration->own |= data->reuses == 0.0;
        iteration->rate[lane] = data->rate;
        for (int k = 0; k < UNKNOWNS; k++) group->kept[k][lane] = data->kept[k];
    }
    iteration->inverse = group->kept;
}

#include "lane_newton.c"

void solve(const Data *data, Found *found, char *reason) {
    Group group = {.data = data};
    Problem problem;
    Iteration iteration = {0};
    for (int lane = 0; lane < LANES; lane++) {
        for (int j = 0; j < COORDINATES; j++) group.state.velocities[j][lane] = data[lane].velocity;
    }
    problem.taking_part = NOWHERE;
    const Mask solved = newton(&group, &problem, splat(1e-3), &iteration, EVERYWHERE);
    for (int lane = 0; lane < LANES; lane++) {
        found[lane] = (Found){
            solved[lane] != 0, iteration.count, iteration.iteration_matrices, iteration.evaluations, iteration.evaluated,
            iteration.increments[lane], iteration.rate[lane], iteration.spent, iteration.unconverged[lane], {0}
        };
        for (int k = 0; k < UNKNOWNS; k++) found[lane].unknowns[k] = iteration.unknowns[k][lane];
    }
    reason[0] = '\0';
}

#endif
