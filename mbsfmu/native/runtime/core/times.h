/* When two times are one; the numbers are those of mbsfmu/base/times.py, which says why. */
#ifndef MBSFMU_TIMES_H
#define MBSFMU_TIMES_H

#include <float.h>
#include <math.h>

#include "extrema.h"

/* The distance of neighbouring floating-point numbers, at most, at the larger of two times. */
static inline double resolution(double one, double other) { return DBL_EPSILON * larger(fabs(one), fabs(other)); }

/* By how much two times may differ that are one; `step` is the step that they belong to. */
static inline double time_tolerance(double step, double one, double other) {
    return SAME_TIME * step + NEIGHBOURS * resolution(one, other);
}

/* How many equal steps, none longer than `most`, an interval takes. */
static inline double count_steps(double begin, double end, double most) {
    return larger(1.0, ceil((end - begin - time_tolerance(most, begin, end)) / most));
}

#endif
