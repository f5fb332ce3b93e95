/* Newton's iteration of units for one equation of a step, f(x) = x + bend x³ − 0.5, called from Python. */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAT inline
#define ROOM(size) ((size) > 0 ? (size) : 1)
#define COPY(to, from, count) memcpy((to), (from), sizeof(double) * (size_t)(count))
#define COORDINATES 1
#define UNKNOWNS 1
#define ALL_UNKNOWNS 1
#define STATES 0
#define ITERATION_MATRIX 1
#define ITERATION_MATRIX_USE 5
#define HISTORY 0
#ifndef MOST_INCREMENTS
#define MOST_INCREMENTS 0
#endif
#include "shared.h"

static double REMAINING, HEAVIEST, REFRESH_COST, bend, noise, unknown_tolerances[1];
static const double unknown_nominals[1] = {1.0};

typedef struct {
    double iteration_matrix[ITERATION_MATRIX], iteration_matrix_use[ITERATION_MATRIX_USE], history[1];
    double coordinates[COORDINATES], velocities[COORDINATES];
} State;

typedef struct {
    State state;
    double replaced[ITERATION_MATRIX], parts[2 * ITERATION_MATRIX];
    int has_replaced, evaluations;
    char reason[512];
} Instance;

typedef struct {
    double guess[1];
} Problem;

static double larger(double a, double b) { return a > b ? a : b; }

static int fail(Instance *instance, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(instance->reason, sizeof instance->reason, format, arguments);
    va_end(arguments);
    return 0;
}

static double *scratch_of_iteration_matrix(double (*parts)[2 * ITERATION_MATRIX]) { return *parts; }
static int loops_hold(Instance *instance) { return instance != NULL; }
static void forget_iteration_matrix(State *state) { memset(state->iteration_matrix_use, 0, sizeof state->iteration_matrix_use); }

static const char *unknown_name(const Instance *instance, int unknown) {
    return instance && unknown == 0 ? "x" : "";
}

static double start, at;

static void begin(Instance *instance, Problem *problem, double step) {
    (void)instance;
    (void)step;
    problem->guess[0] = start;
}

/* With noise, round-off that changes its sign from one evaluation to the next. */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    (void)problem;
    at = unknowns[0];
    if (fabs(at) > 1e6) return fail(instance, "far away");
    residual[0] = at + bend * at * at * at - 0.5 + (instance->evaluations++ % 2 ? noise : -noise);
    return 1;
}

static void iteration_matrix(Instance *instance, double *matrix) {
    (void)instance;
    matrix[0] = 1.0 + 3.0 * bend * at * at;
}

#include "linear.c"
static int solutions; /* how often an inverse is used */
#define multiply(...) (solutions++, multiply(__VA_ARGS__))
#include "newton.h"
#include "newton_machine.c"
#include "newton.c"

__attribute__((visibility("default"))) double largest(const double *values, int count) { return largest_magnitude(values, count); }

/* Solve a step of 1 ms. `given`: guess, bend, noise, tolerance, remaining, renewal cost, greatest
 * weight, velocity. `kept`: the inverse of an earlier iteration matrix and what it has been used for, which are replaced. Writes the solution, increments, iteration
 * matrices, evaluations, solutions by inverses. */
__attribute__((visibility("default"))) int solve(const double *given, double *kept, double *found, char *reason) {
    Instance instance = {0};
    Problem problem;
    Iteration iteration;
    solutions = 0;
    start = given[0];
    bend = given[1];
    noise = given[2];
    unknown_tolerances[0] = given[3];
    REMAINING = given[4];
    REFRESH_COST = given[5];
    HEAVIEST = given[6];
    instance.state.velocities[0] = given[7];
    instance.state.iteration_matrix[0] = kept[0];
    COPY(instance.state.iteration_matrix_use, kept + 1, ITERATION_MATRIX_USE);
    const int done = newton(&instance, &problem, 1e-3, &iteration);
    memcpy(reason, instance.reason, sizeof instance.reason);
    if (!done) return 0;
    store_iteration_matrix(&instance, 1e-3, &iteration);
    found[0] = iteration.unknowns[0];
    found[1] = iteration.count;
    found[2] = iteration.iteration_matrices;
    found[3] = instance.evaluations;
    found[4] = solutions;
    kept[0] = instance.state.iteration_matrix[0];
    COPY(kept + 1, instance.state.iteration_matrix_use, ITERATION_MATRIX_USE);
    return 1;
}
