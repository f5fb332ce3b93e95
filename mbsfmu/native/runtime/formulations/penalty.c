/* The formulation by penalty forces: all coordinates are unknowns. */

/* The factor is a constant. */
static void set_penalty(const Parts *parts) { (void)parts; }

#include "augmented.c"

/* How many times the factor is too small for a projection with these factors, of a solution that was another motion
 * before; `open` is room. */
static double stiffening_of(
    const double *matrix, const int *pivots, double softness, const double *solution, const double *given, double *open
) {
    double missing = 0.0, moved = 0.0, size = 1.0;
    for (int j = 0; j < COORDINATES; j++) open[j] = 0.0;
    for (int i = COORDINATES; i < SADDLE; i++) open[i] = -softness * solution[i];
    substitute(SADDLE, matrix, pivots, open);
    for (int j = 0; j < COORDINATES; j++) {
        missing += open[j] * open[j];
        moved += (solution[j] - given[j]) * (solution[j] - given[j]);
        size = larger(size, fabs(given[j]));
    }
    return sqrt(missing) > PROJECTED_ROUND_OFF * size ? stiffening(sqrt(missing / larger(moved, missing)), WEAK) : 1.0;
}

/* Find the projected motion and what holds it, with what the weakest constraints need; returns 0 where that is singular. */
static int project(const Parts *parts, double *matrix, int *pivots, double *right) {
    double open[ROOM(SADDLE)];
    projection(parts, matrix, right);
    const double softness = -matrix[SADDLE * SADDLE - 1], penalty = *parts->penalty;
    if (!factorize(SADDLE, matrix, pivots)) return 0;
    substitute(SADDLE, matrix, pivots, right);
    substitute(SADDLE, matrix, pivots, right + SADDLE);
    if (!STIFFENS_PENALTY) return 1;
    const double factor = larger(
        stiffening_of(matrix, pivots, softness, right, parts->velocities, open),
        stiffening_of(matrix, pivots, softness, right + SADDLE, parts->accelerations, open)
    );
    if (factor == 1.0) return 1;
    *parts->penalty = factor * penalty;
    projection(parts, matrix, right);
    *parts->penalty = penalty;
    if (!factorize(SADDLE, matrix, pivots)) return 0;
    substitute(SADDLE, matrix, pivots, right);
    substitute(SADDLE, matrix, pivots, right + SADDLE);
    return 1;
}

/* Project velocities and accelerations onto the constraints [eqs. 20 and 21]. */
static int finish(Instance *instance, Problem *problem) {
    const Parts *parts = &instance->parts;
    double matrix[ROOM(SADDLE * SADDLE)], right[ROOM(2 * SADDLE)];
    int pivots[ROOM(SADDLE)];
    (void)problem;
    if (CONSTRAINTS == 0) return 1;
    /* What redundant equations hold against each other moves nothing, but would add up as they turn. */
    if (REDUNDANT) shorten(parts, parts->multipliers);
    if (!project(parts, matrix, pivots, right)) return fail(instance, "the projection is singular");
    COPY(parts->velocities, right, COORDINATES);
    COPY(parts->accelerations, right + SADDLE, COORDINATES);
#if DRIVEN > 0
    /* What is unbalanced behind the projection is W v + Phi_z^T eta, v being the error of the step and eta that of lambda. */
    unbalanced(parts, right);
    for (int i = 0; i < CONSTRAINTS; i++) right[COORDINATES + i] = 0.0;
    substitute(SADDLE, matrix, pivots, right);
    for (int i = 0; i < CONSTRAINTS; i++) parts->multipliers[i] -= right[COORDINATES + i];
#endif
    return 1;
}

/* There is nothing to remember. */
static inline int prepare(Instance *instance) {
    (void)instance;
    return 1;
}

/* Describe the state that a step has led to as the next one needs it. */
static void change_chart(Instance *instance) { change_reference_quaternions(instance); }
