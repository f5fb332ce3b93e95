/* The elimination of FMUs that passes over zeros, for matrices of SOLVED rows, called from Python. */
#include <math.h>
#include <string.h>

#define ROOM(size) ((size) > 0 ? (size) : 1)
#include "sparse.c"

/* Solve for one right side, which becomes the solution; the matrix and the scales are overwritten. Returns how many rows
 * have been exchanged, less than zero where the matrix is singular; writes how many elements the factors have. */
__attribute__((visibility("default"))) int solve(double *matrix, double *scales, double *right, int *elements) {
    Elements listed;
    int pivots[SOLVED], exchanged = 0;
    if (!factorize_sparse(matrix, scales, pivots, &listed)) return -1;
    substitute_sparse(matrix, pivots, &listed, right);
    *elements = SOLVED;
    for (int k = 0; k < SOLVED; k++) {
        exchanged += pivots[k] != k;
        *elements += listed.count_above[k] + listed.count_below[k];
    }
    return exchanged;
}
