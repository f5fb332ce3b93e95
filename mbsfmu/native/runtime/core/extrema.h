/* The larger and the smaller of two numbers, without the calls that fmax and fmin cost. */
#ifndef MBSFMU_EXTREMA_H
#define MBSFMU_EXTREMA_H

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

#endif
