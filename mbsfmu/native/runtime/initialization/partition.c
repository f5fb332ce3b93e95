/* Coordinate partitioning: which joint coordinates are independent. */

/* Mark the first `rank` columns by orthogonal decomposition with column pivoting, in place, as dependent. Returns 0
 * where pivots below tolerance * the first are among them. */
static int take_pivots(int rows, int columns, double *matrix, int rank, double tolerance, int *dependent) {
    double scales[ROOM(MOST_COORDINATES)];
    int order[ROOM(QR_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    for (int j = 0; j < columns; j++) dependent[j] = 0;
    if (rank == 0) return 1;
    if (orthogonalize(rows, columns, matrix, scales, order, tolerance) < rank) return 0;
    for (int k = 0; k < rank; k++) dependent[order[k]] = 1;
    return 1;
}
