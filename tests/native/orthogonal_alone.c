/* The orthogonal decompositions of units, for matrices of any size, called from Python. */
#include <math.h>
#include <string.h>

#define FLAT inline
#define ROOM(size) ((size) > 0 ? (size) : 1)
static inline double larger(double a, double b) { return a > b ? a : b; }
#include "scratch.h"
#include "linear.c"
#include "orthogonal.c"

#define SHOWN __attribute__((visibility("default")))

/* Lengths by which columns stand out, in the order in which they are taken; returns the rank. */
SHOWN int stands_out(int rows, int columns, double *a, double tolerance, double *lengths, int *order) {
    double scales[columns];
    int orders[QR_ORDERS(rows, columns)];
    const int rank = orthogonalize(rows, columns, a, scales, orders, tolerance);
    for (int k = 0; k < rank; k++) lengths[k] = fabs(a[k + rows * k]);
    for (int k = 0; k < rank; k++) order[k] = orders[k];
    return rank;
}

SHOWN void shortest(int rows, int columns, const double *a, const double *b, double tolerance, double *x, double *work) {
    int orders[SQUARES_ORDERS(rows, columns)];
    least_squares(rows, columns, a, b, x, tolerance, work, orders);
}

SHOWN int left_free(
    int rows, int columns, const double *a, double tolerance, int most, double *basis, double *work
) {
    int orders[SQUARES_ORDERS(rows, columns)];
    return null_space(rows, columns, a, basis, tolerance, most, work, orders);
}

SHOWN void solve_dense(int n, double *a, double *b) {
    int pivots[n];
    if (factorize(n, a, pivots)) substitute(n, a, pivots, b);
}
