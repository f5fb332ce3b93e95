/* Sizes of steps, and where dense matrices of these and of loop equations are worked on: in the instance, as stacks of
 * threads are short. Each function has a place of its own, since some call others. */
#ifndef MBSFMU_SCRATCH_H
#define MBSFMU_SCRATCH_H

#define SADDLE (COORDINATES + CONSTRAINTS)
#define OF_PHI_Z (CONSTRAINTS * COORDINATES)

/* Whether some of the loop equations follow from the others. */
#define REDUNDANT (RANK < CONSTRAINTS)

/* Number of ints that `orthogonalize` needs. */
#define QR_ORDERS(rows, columns) ((columns) + 2 * (rows))
/* Number of doubles and ints that `least_squares` and `null_space` need at most. */
#define SQUARES_WORK(rows, columns) ((rows) * (columns) + (columns) * (columns) + 4 * (columns) + 2 * (rows))
#define SQUARES_ORDERS(rows, columns) (2 * (rows) + 4 * (columns))

/* Equations with multipliers are solved at an instant where a formulation has no motion of its own, and for derivatives. */
#define SOLVES_SADDLE (!OWN_MOTION || !CHANGES)

#define SCRATCH_OF_ROWS (REDUNDANT ? 2 * OF_PHI_Z : 0)
#define SCRATCH_OF_MULTIPLIERS \
    (REDUNDANT ? 2 * OF_PHI_Z + SQUARES_WORK(COORDINATES, CONSTRAINTS) : 0)
#define SCRATCH_OF_SADDLE (SOLVES_SADDLE ? 2 * SADDLE * SADDLE + 2 * OF_PHI_Z + SQUARES_WORK(SADDLE, SADDLE) : 0)
#define SCRATCH_OF_REACTIONS \
    (PLAY > 0 ? (2 * COORDINATES + ALL_CONSTRAINTS) * ALL_CONSTRAINTS + REACTIONS * PLAY \
         + SQUARES_WORK(MOST(COORDINATES, REACTIONS), ALL_CONSTRAINTS) : 0)
#define SCRATCH_OF_ITERATION_MATRIX (SOLVER == IMPLICIT ? 2 * ITERATION_MATRIX : 0)
/* Numbers that an attempt of a step has (adaptive.h). */
#define ATTEMPT ((STAGES + 5) * ROOM(POINT) + 2 * STAGES + 3)
#define SCRATCH_OF_STAGES (SOLVER == ROSENBROCK ? ATTEMPT + (FACTORS == 0 ? 2 * POINT * POINT : 0) : 0)
#define SCRATCH_OF_LANDING (CLOSES_LOOPS ? 0 : OF_PHI_Z + SQUARES_WORK(CONSTRAINTS, COORDINATES))
#define SCRATCH \
    (SCRATCH_OF_LANDING + SCRATCH_OF_ROWS + SCRATCH_OF_MULTIPLIERS + SCRATCH_OF_SADDLE + SCRATCH_OF_REACTIONS + SCRATCH_OF_ITERATION_MATRIX \
     + SCRATCH_OF_STAGES + GRADIENTS)

static inline double *scratch_of_landing(const Parts *parts) { return parts->scratch; }
static inline double *scratch_of_rows(const Parts *parts) { return parts->scratch + SCRATCH_OF_LANDING; }
static inline double *scratch_of_multipliers(const Parts *parts) { return scratch_of_rows(parts) + SCRATCH_OF_ROWS; }
static inline double *scratch_of_saddle(const Parts *parts) { return scratch_of_multipliers(parts) + SCRATCH_OF_MULTIPLIERS; }
static inline double *scratch_of_reactions(const Parts *parts) { return scratch_of_saddle(parts) + SCRATCH_OF_SADDLE; }
static inline double *scratch_of_gradients(const Parts *parts) { return scratch_of_reactions(parts) + SCRATCH_OF_REACTIONS; }
static inline double *scratch_of_iteration_matrix(const Parts *parts) { return scratch_of_gradients(parts) + GRADIENTS; }
static inline double *scratch_of_stages(const Parts *parts) { return scratch_of_iteration_matrix(parts) + SCRATCH_OF_ITERATION_MATRIX; }

/* Elements of y = (z_i, z_i', x, integrals) of the equations in independent coordinates. */
#define REDUCED_SIZE (2 * FREEDOM + STATES + INTEGRALS)

/* Of linearly implicit steps. */
#define CONTROLLED (SIZE - INTEGRALS)           /* elements of y on which rates depend */
#define WATCHED (DRIVEN > 0 ? SIZE : CONTROLLED)  /* elements of y whose error is controlled */
#define SOLVED (CONTROLLED - CHAINED)   /* of the elements of y that are controlled the first follow from the others */
#define SLOPES (SOLVED + INTEGRALS)

#endif
