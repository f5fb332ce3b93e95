/* Sizes of linearly implicit steps. */
#ifndef MBSFMU_ROSENBROCK_SIZES_H
#define MBSFMU_ROSENBROCK_SIZES_H

#define CONTROLLED (SIZE - INTEGRALS)           /* elements of y on which rates depend */
#define WATCHED (DRIVEN > 0 ? SIZE : CONTROLLED)  /* elements of y whose error is controlled */
#define SOLVED (CONTROLLED - CHAINED)   /* of the elements of y that are controlled the first follow from the others */
#define SLOPES (SOLVED + INTEGRALS)

#endif
