/* The formulation by penalty forces: all coordinates are unknowns. */

/* The factor is a constant. */
static void set_penalty(const Parts *parts) { (void)parts; }

#include "augmented.c"

/* Project velocities and accelerations onto the constraints [eqs. 20 and 21]. */
static int finish(Instance *instance, Problem *problem) {
    const Parts *parts = &instance->parts;
    double matrix[ROOM(SADDLE * SADDLE)], right[ROOM(2 * SADDLE)];
    int pivots[ROOM(SADDLE)];
    (void)problem;
    if (CONSTRAINTS == 0) return 1;
    /* What redundant equations hold against each other moves nothing, but would add up as they turn. */
    if (REDUNDANT) shorten(parts, parts->multipliers);
    projection(parts, matrix, right);
    if (!factorize(SADDLE, matrix, pivots)) return fail(instance, "the projection is singular");
    substitute(SADDLE, matrix, pivots, right);
    substitute(SADDLE, matrix, pivots, right + SADDLE);
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
static void describe_anew(Instance *instance) { recentre(instance); }
