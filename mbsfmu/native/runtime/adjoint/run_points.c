/* A run at its points, where steps begin and end: accelerations, multipliers and rates of F, w' = F with
 * w = (z_i, z_i', x, integrals). What differentiates the steps of double-step includes it behind the generated functions.
 * mbsfmu/analysis/run_points.py does the same in Python. */
#include "identity.h"

#include "instance.h"

#include "orthogonal.c"
#include "reduction.c"

enum {
    FLOW = STATES + INTEGRALS,
    MOVING = 2 * FREEDOM + STATES,      /* of w, what F depends on */
    SOLVED = FREEDOM + STATES,          /* unknowns of a step, without positions and integrals */
    FIRST_INTEGRAL = MOVING
};

/* A run at its points, where steps begin and end; mbsfmu/native/point_library.py has the same fields. Arrays have a row
 * for each point. */
typedef struct {
    int points;
    int failed;                         /* the first point where the loops or the masses are singular; -1 where none is */
    const double *parameters, *references, *discrete, *loop_iterates, *active;
    const int *dependent;               /* flags of the coordinates, for each choice */
    const int *choices;                 /* of each point */
    const double *coordinates, *states, *integrals, *inputs;
    double *velocities;                 /* given are the independent ones; completed on the constraints … */
    double *independent_velocities, *independent_accelerations, *accelerations, *multipliers;
    double *rates;                      /* … and F found */
    const int *read;                    /* which of the outputs, z, z', z'', x and integrals are wanted … */
    int read_count;
    double *values;                     /* … and their values */
} Run;

/* What points are evaluated with. */
typedef struct {
    Instance instance;
    double mass[ROOM(FREEDOM * FREEDOM)], computed[ROOM(COMPUTED)];
    double violation[ROOM(CONSTRAINTS)], jacobian[ROOM(CONSTRAINTS * COORDINATES)];
    DependentFactors factors;
} Evaluation;

EXPORT const char *mbsfmu_identity(void) { return IDENTITY; }

static void begin(Evaluation *evaluation, const Run *run) {
    const Parts *parts = &evaluation->instance.parts;
    connect_memory(&evaluation->instance);
    COPY(parts->parameters, run->parameters, PARAMETERS);
    COPY(parts->references, run->references, REFERENCES);
    COPY(parts->discrete, run->discrete, DISCRETE);
    COPY(parts->loop_iterates, run->loop_iterates, LOOP_ITERATES);
    COPY(parts->active, run->active, CONSTRAINTS);
}

/* A row of an array, for each point one of so many numbers. */
#define ROW(array, point, size) ((array) + (size_t)(point) * (size_t)(size))

/* Bring the arguments to a point, with R_z and G; returns 0 where the loops are singular. */
static int load_point(Evaluation *evaluation, const Run *run, int point) {
    const Parts *parts = &evaluation->instance.parts;
    COPY(parts->coordinates, ROW(run->coordinates, point, COORDINATES), COORDINATES);
    COPY(parts->velocities, ROW(run->velocities, point, COORDINATES), COORDINATES);
    COPY(parts->states, ROW(run->states, point, STATES), STATES);
    COPY(parts->integrals, ROW(run->integrals, point, INTEGRALS), INTEGRALS);
    COPY(parts->inputs, ROW(run->inputs, point, INPUTS), INPUTS);
#if CONSTRAINTS > 0
    const int *dependent = ROW(run->dependent, run->choices[point], COORDINATES);
    int chosen[ROOM(RANK)], count = 0;
    closure(parts, evaluation->violation, evaluation->jacobian);
    for (int j = 0; j < COORDINATES; j++) {
        if (!dependent[j]) continue;
        COPY(evaluation->factors.matrix + CONSTRAINTS * count, evaluation->jacobian + CONSTRAINTS * j, CONSTRAINTS);
        chosen[count++] = j;
    }
    if (!factorize_dependent(&evaluation->factors)) return 0;
    reduce(parts, dependent, chosen, evaluation->jacobian, &evaluation->factors);
#endif
    return 1;
}

/* Find accelerations, multipliers and rates at a point, and what is read there. */
static int complete_point(Evaluation *evaluation, const Run *run, int point) {
    const Parts *parts = &evaluation->instance.parts;
    const int *dependent = ROW(run->dependent, run->choices[point], COORDINATES);
    double *const rates = ROW(run->rates, point, POINT);
    int free = 0, pivots[ROOM(FREEDOM)];
    if (!load_point(evaluation, run, point)) return 0;
    for (int j = 0; j < COORDINATES; j++) {
        if (!dependent[j]) parts->independent_velocities[free++] = parts->velocities[j];
    }
#if RATES_AT_ONCE
    reduced_dynamics(
        parts, evaluation->mass, parts->independent_accelerations, rates + 2 * FREEDOM, rates + 2 * FREEDOM + STATES
    );
#else
    reduced_dynamics(parts, evaluation->mass, parts->independent_accelerations, rates + 2 * FREEDOM);
#endif
    if (!factorize(FREEDOM, evaluation->mass, pivots)) return 0;
    substitute(FREEDOM, evaluation->mass, pivots, parts->independent_accelerations);
    reduced_motion(parts);
#if RATES_BY_ACCELERATIONS
    state_rates(parts, rates + 2 * FREEDOM);
#endif
#if !RATES_AT_ONCE
    integral_rates(parts, rates + 2 * FREEDOM + STATES);
#endif
    COPY(rates, parts->independent_velocities, FREEDOM);
    COPY(rates + FREEDOM, parts->independent_accelerations, FREEDOM);
    COPY(ROW(run->independent_velocities, point, FREEDOM), parts->independent_velocities, FREEDOM);
    COPY(ROW(run->independent_accelerations, point, FREEDOM), parts->independent_accelerations, FREEDOM);
    COPY(ROW(run->velocities, point, COORDINATES), parts->velocities, COORDINATES);
    COPY(ROW(run->accelerations, point, COORDINATES), parts->accelerations, COORDINATES);
    COPY(ROW(run->multipliers, point, CONSTRAINTS), parts->multipliers, CONSTRAINTS);
    if (run->read_count) reduced_computed(parts, evaluation->computed);
    for (int k = 0; k < run->read_count; k++) run->values[(size_t)point * (size_t)run->read_count + k] = evaluation->computed[run->read[k]];
    return 1;
}

/* Complete a run at all of its points; returns 0 without memory. */
EXPORT int mbsfmu_complete(Run *run) {
    Evaluation *const evaluation = calloc(1, sizeof *evaluation);
    if (!evaluation) return 0;
    begin(evaluation, run);
    run->failed = -1;
    for (int point = 0; point < run->points && run->failed < 0; point++) {
        if (!complete_point(evaluation, run, point)) run->failed = point;
    }
    free(evaluation);
    return 1;
}

/* Bring the arguments to a completed point; returns 0 where the loops are singular. */
static int load_completed(Evaluation *evaluation, const Run *run, int point) {
    const Parts *parts = &evaluation->instance.parts;
    if (!load_point(evaluation, run, point)) return 0;
    COPY(parts->independent_velocities, ROW(run->independent_velocities, point, FREEDOM), FREEDOM);
    COPY(parts->independent_accelerations, ROW(run->independent_accelerations, point, FREEDOM), FREEDOM);
    COPY(parts->accelerations, ROW(run->accelerations, point, COORDINATES), COORDINATES);
    COPY(parts->multipliers, ROW(run->multipliers, point, CONSTRAINTS), CONSTRAINTS);
    return 1;
}

/* Factors of I - h/2 dF/dw with h/2 as `half`, of which positions and integrals are eliminated; derivatives of the
 * accelerations, `pushed`, and of the other rates, `flow`, are by w without the integrals, column by column. */
static int factorize_step(const double *pushed, const double *flow, double half, double *matrix, int *pivots) {
    for (int j = 0; j < SOLVED; j++) {
        double *const column = matrix + SOLVED * j;
        for (int i = 0; i < FREEDOM; i++) column[i] = -half * pushed[i + FREEDOM * (FREEDOM + j)];
        for (int i = 0; i < STATES; i++) column[FREEDOM + i] = -half * flow[i + FLOW * (FREEDOM + j)];
        if (j < FREEDOM) { /* positions follow from velocities */
            for (int i = 0; i < FREEDOM; i++) column[i] -= half * half * pushed[i + FREEDOM * j];
            for (int i = 0; i < STATES; i++) column[FREEDOM + i] -= half * half * flow[i + FLOW * j];
        }
        column[j] += 1.0;
    }
    return factorize(SOLVED, matrix, pivots);
}

static inline double dot(int count, const double *a, const double *b) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}
