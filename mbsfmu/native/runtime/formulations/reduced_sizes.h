/* Sizes of y = (z_i, z_i', x, integrals) of the reduced equations; the first elements follow from others alone. */
#ifndef MBSFMU_REDUCED_SIZES_H
#define MBSFMU_REDUCED_SIZES_H

#define SIZE (2 * FREEDOM + STATES + INTEGRALS)
#define CHAINED FREEDOM

#endif
