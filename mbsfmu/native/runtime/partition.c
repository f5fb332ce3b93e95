/* Coordinate partitioning: which joint coordinates are independent. */

/* Choose by Gaussian elimination with full pivoting; marks dependent coordinates. Returns 0 where rank is missing. */
static int choose(int rows, int columns, const double *jacobian, int rank, int *dependent) {
    double matrix[ROOM(MOST_CONSTRAINTS * MOST_COORDINATES)];
    const double largest = largest_magnitude(jacobian, rows * columns);
    memcpy(matrix, jacobian, sizeof(double) * (size_t)(rows * columns));
    for (int j = 0; j < columns; j++) dependent[j] = 0;
    for (int step = 0; step < rank; step++) {
        int row = step, column = 0;
        double pivot = -1.0;
        for (int i = step; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                const double size = dependent[j] ? 0.0 : fabs(matrix[i + rows * j]);
                if (size > pivot) {
                    pivot = size;
                    row = i;
                    column = j;
                }
            }
        }
        if (!(pivot > RANK_TOLERANCE * largest)) return 0;
        for (int j = 0; j < columns; j++) {
            const double kept = matrix[step + rows * j];
            matrix[step + rows * j] = matrix[row + rows * j];
            matrix[row + rows * j] = kept;
        }
        for (int i = step + 1; i < rows; i++) {
            const double factor = matrix[i + rows * column] / matrix[step + rows * column];
            for (int j = 0; j < columns; j++) matrix[i + rows * j] -= factor * matrix[step + rows * j];
        }
        dependent[column] = 1;
    }
    return 1;
}
