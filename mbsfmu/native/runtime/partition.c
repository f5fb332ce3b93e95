/* Coordinate partitioning: which joint coordinates are independent. */

/* Choose by orthogonal decomposition with column pivoting, which goes by the same lengths in every frame; marks dependent
 * coordinates. Returns 0 where rank is missing. */
static int choose(int rows, int columns, const double *jacobian, int rank, int *dependent) {
    double factors[ROOM(MOST_CONSTRAINTS * MOST_COORDINATES)], scales[ROOM(MOST_COORDINATES)];
    int order[ROOM(MOST_COORDINATES)];
    for (int j = 0; j < columns; j++) dependent[j] = 0;
    if (rank == 0) return 1;
    memcpy(factors, jacobian, sizeof(double) * (size_t)(rows * columns));
    if (orthogonalize(rows, columns, factors, scales, order, RANK_TOLERANCE) < rank) return 0;
    for (int k = 0; k < rank; k++) dependent[order[k]] = 1;
    return 1;
}
