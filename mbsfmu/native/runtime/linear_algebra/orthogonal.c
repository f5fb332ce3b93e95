/* Dense systems of any rank, by orthogonal decompositions. Matrices are stored as in linear.c. */

static inline void exchange_ints(int *one, int *other) {
    const int kept = *one;
    *one = *other;
    *other = kept;
}

static inline void exchange_doubles(double *one, double *other) {
    const double kept = *one;
    *one = *other;
    *other = kept;
}

/* Householder QR with column pivoting, in place; returns the rank: pivots below tolerance * the first count as zero.
 * The reflectors stand below the diagonal, their factors in `scales`. A reflector is made of the rows only in which its
 * column has elements, one of which is moved to the diagonal: where rows have few elements, so is the work. `order` has
 * the columns' order, then for each step the row that was exchanged with the diagonal's, then room: QR_ORDERS ints. */
static int orthogonalize(int rows, int columns, double *a, double *scales, int *order, double tolerance) {
    const int most = rows < columns ? rows : columns;
    int *const exchanged = order + columns, *const met = exchanged + rows;
    double first = 0.0;
    for (int j = 0; j < columns; j++) {
        order[j] = j;
        scales[j] = magnitude(a + rows * j, rows);
    }
    for (int k = 0; k < most; k++) {
        int best = k, count = 0;
        double largest = 0.0, size = -1.0;
        for (int j = k; j < columns; j++) largest = larger(largest, scales[j]); /* where reflectors' factors will stand */
        for (int j = k; j < columns; j++) { /* of those that are as long but for round-off, the first as given */
            const double candidate = scales[j];
            if (candidate >= (1.0 - AS_LONG) * largest && (size < 0.0 || order[j] < order[best])) {
                size = candidate;
                best = j;
            }
        }
        if (k == 0) first = size;
        if (!(size > tolerance * first) || size == 0.0) return k;
        if (best != k) {
            exchange_ints(order + k, order + best);
            scales[best] = scales[k];
            for (int i = 0; i < rows; i++) exchange_doubles(a + i + rows * k, a + i + rows * best);
        }
        double *const column = a + rows * k;
        for (int i = k; i < rows; i++) {
            if (fabs(column[i]) > NEGLIGIBLE * size) {
                met[count++] = i;
            } else {
                column[i] = 0.0;
            }
        }
        exchanged[k] = count > 0 ? met[0] : k;
        if (exchanged[k] != k) {
            for (int j = 0; j < columns; j++) exchange_doubles(a + k + rows * j, a + exchanged[k] + rows * j);
        }
        const double diagonal = column[k] > 0.0 ? -size : size;
        const double head = column[k] - diagonal;
        scales[k] = -head / diagonal;
        for (int l = 1; l < count; l++) column[met[l]] /= head;
        column[k] = diagonal;
        for (int j = k + 1; j < columns; j++) {
            double *const other = a + rows * j;
            double sum = other[k];
            for (int l = 1; l < count; l++) sum += column[met[l]] * other[met[l]];
            if (sum == 0.0 && other[k] == 0.0) continue;
            sum *= scales[k];
            other[k] -= sum;
            for (int l = 1; l < count; l++) other[met[l]] -= column[met[l]] * sum;
            scales[j] = magnitude(other + k + 1, rows - k - 1);
        }
    }
    return most;
}

/* Bring a vector into the order of the rows of the factors, of some rank. */
static void arrange(int rank, const int *exchanged, double *vector) {
    for (int k = 0; k < rank; k++) exchange_doubles(vector + k, vector + exchanged[k]);
}

/* Bring it back. */
static void arrange_back(int rank, const int *exchanged, double *vector) {
    for (int k = rank - 1; k >= 0; k--) exchange_doubles(vector + k, vector + exchanged[k]);
}

/* Apply reflector k of the factors to a vector. */
static void reflect(int rows, const double *a, const double *scales, int k, double *vector) {
    double sum = vector[k];
    for (int i = k + 1; i < rows; i++) sum += a[i + rows * k] * vector[i];
    sum *= scales[k];
    vector[k] -= sum;
    for (int i = k + 1; i < rows; i++) vector[i] -= a[i + rows * k] * sum;
}

/* The least squares solution x with the factors of a matrix of full column rank; b is overwritten. */
static inline void solve_tall(
    int rows, int columns, const double *factors, const double *scales, const int *order, double *b, double *x
) {
    arrange(columns, order + columns, b);
    for (int k = 0; k < columns; k++) reflect(rows, factors, scales, k, b);
    for (int k = columns - 1; k >= 0; k--) {
        double value = b[k];
        for (int j = k + 1; j < columns; j++) value -= factors[k + rows * j] * x[order[j]];
        x[order[k]] = value / factors[k + rows * k];
    }
}

/* The shortest x with the least |a x - b|, by complete orthogonal decomposition. */
static inline void least_squares(
    int rows, int columns, const double *a, const double *b, double *x, double tolerance, double *work, int *orders
) {
    double *factors = work, *scales = factors + rows * columns, *right = scales + columns;
    double *turned = right + (rows > columns ? rows : columns), *turned_scales = turned + columns * columns;
    int *order = orders, *turned_order = orders + QR_ORDERS(rows, columns);
    memcpy(factors, a, sizeof(double) * (size_t)(rows * columns));
    memcpy(right, b, sizeof(double) * (size_t)rows);
    const int rank = orthogonalize(rows, columns, factors, scales, order, tolerance);
    arrange(rank, order + columns, right);
    for (int k = 0; k < rank; k++) reflect(rows, factors, scales, k, right);
    /* [R11 R12] y = c with the shortest y: the transpose is decomposed once more. */
    for (int k = 0; k < rank; k++) {
        for (int j = 0; j < columns; j++) turned[j + columns * k] = j >= k ? factors[k + rows * j] : 0.0;
    }
    /* Numbers that overflow may leave less than the rank of before. */
    const int turned_rank = orthogonalize(columns, rank, turned, turned_scales, turned_order, 0.0);
    /* The pivoting of this second decomposition permutes the equations of c. */
    double *y = turned_scales + columns;
    for (int k = 0; k < columns; k++) y[k] = 0.0;
    for (int k = 0; k < turned_rank; k++) {
        double value = right[turned_order[k]];
        for (int i = 0; i < k; i++) value -= turned[i + columns * k] * y[i];
        y[k] = value / turned[k + columns * k];
    }
    for (int k = turned_rank - 1; k >= 0; k--) reflect(columns, turned, turned_scales, k, y);
    arrange_back(turned_rank, turned_order + rank, y);
    for (int j = 0; j < columns; j++) x[order[j]] = y[j];
}

/* An orthonormal basis of all x with a x = 0, columns of `basis`; returns their number. The rank of a is at most
 * `most`. */
static inline int null_space(
    int rows, int columns, const double *a, double *basis, double tolerance, int most, double *work,
    int *orders
) {
    double *turned = work, *scales = turned + rows * columns;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) turned[j + columns * i] = a[i + rows * j];
    }
    const int found = rows == 0 ? 0 : orthogonalize(columns, rows, turned, scales, orders, tolerance);
    const int rank = found < most ? found : most;
    for (int j = rank; j < columns; j++) {
        double *vector = basis + columns * (j - rank);
        for (int i = 0; i < columns; i++) vector[i] = i == j ? 1.0 : 0.0;
        for (int k = rank - 1; k >= 0; k--) reflect(columns, turned, scales, k, vector);
        arrange_back(found, orders + rows, vector);
    }
    return columns - rank;
}

/* Mark the first `rank` columns by orthogonal decomposition with column pivoting, in place, as dependent. Returns 0
 * where pivots below tolerance * the first are among them. */
static inline int take_pivots(int rows, int columns, double *matrix, int rank, double tolerance, int *dependent) {
    double scales[ROOM(MOST_COORDINATES)];
    int order[ROOM(QR_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    for (int j = 0; j < columns; j++) dependent[j] = 0;
    if (rank == 0) return 1;
    if (orthogonalize(rows, columns, matrix, scales, order, tolerance) < rank) return 0;
    for (int k = 0; k < rank; k++) dependent[order[k]] = 1;
    return 1;
}
