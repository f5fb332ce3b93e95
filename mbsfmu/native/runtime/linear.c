/* Small dense linear systems. Matrices are stored column by column: a[i + rows * j]. */

static double largest_magnitude(const double *values, int count) {
    double largest = 0.0;
    for (int i = 0; i < count; i++) {
        if (!(fabs(values[i]) <= largest)) largest = fabs(values[i]); /* NaN is larger than everything */
    }
    return largest;
}

static double magnitude(const double *values, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += values[i] * values[i];
    return sqrt(sum);
}

static int all_finite(const double *values, int count) {
    for (int i = 0; i < count; i++) {
        if (!(values[i] - values[i] == 0.0)) return 0;
    }
    return 1;
}

/* LU factors in place, partial pivoting. Returns 0 where a pivot is zero. */
static FLAT int factorize(int n, double *a, int *pivots) {
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i + n * k]) > fabs(a[pivot + n * k])) pivot = i;
        }
        pivots[k] = pivot;
        if (a[pivot + n * k] == 0.0) return 0;
        if (pivot != k) {
            for (int j = 0; j < n; j++) {
                const double kept = a[k + n * j];
                a[k + n * j] = a[pivot + n * j];
                a[pivot + n * j] = kept;
            }
        }
        for (int i = k + 1; i < n; i++) a[i + n * k] /= a[k + n * k];
        for (int j = k + 1; j < n; j++) {
            const double factor = a[k + n * j];
            for (int i = k + 1; i < n; i++) a[i + n * j] -= a[i + n * k] * factor;
        }
    }
    return 1;
}

/* Solve with the factors; b becomes the solution. */
static FLAT void substitute(int n, const double *factors, const int *pivots, double *b) {
    for (int k = 0; k < n; k++) {
        const double kept = b[k];
        b[k] = b[pivots[k]];
        b[pivots[k]] = kept;
    }
    for (int j = 0; j < n; j++) {
        for (int i = j + 1; i < n; i++) b[i] -= factors[i + n * j] * b[j];
    }
    for (int j = n - 1; j >= 0; j--) {
        b[j] /= factors[j + n * j];
        for (int i = 0; i < j; i++) b[i] -= factors[i + n * j] * b[j];
    }
}

/* Householder QR with column pivoting, in place; returns the rank: pivots below tolerance * the first count as zero.
 * The reflectors stand below the diagonal, their factors in `scales`. */
static int orthogonalize(int rows, int columns, double *a, double *scales, int *order, double tolerance) {
    const int most = rows < columns ? rows : columns;
    double first = 0.0;
    for (int j = 0; j < columns; j++) order[j] = j;
    for (int k = 0; k < most; k++) {
        int best = k;
        double size = -1.0;
        for (int j = k; j < columns; j++) {
            const double candidate = magnitude(a + k + rows * j, rows - k);
            if (candidate > size) {
                size = candidate;
                best = j;
            }
        }
        if (k == 0) first = size;
        if (!(size > tolerance * first) || size == 0.0) return k;
        if (best != k) {
            const int kept = order[k];
            order[k] = order[best];
            order[best] = kept;
            for (int i = 0; i < rows; i++) {
                const double value = a[i + rows * k];
                a[i + rows * k] = a[i + rows * best];
                a[i + rows * best] = value;
            }
        }
        const double diagonal = a[k + rows * k] > 0.0 ? -size : size;
        const double head = a[k + rows * k] - diagonal;
        scales[k] = -head / diagonal;
        for (int i = k + 1; i < rows; i++) a[i + rows * k] /= head;
        a[k + rows * k] = diagonal;
        for (int j = k + 1; j < columns; j++) {
            double sum = a[k + rows * j];
            for (int i = k + 1; i < rows; i++) sum += a[i + rows * k] * a[i + rows * j];
            sum *= scales[k];
            a[k + rows * j] -= sum;
            for (int i = k + 1; i < rows; i++) a[i + rows * j] -= a[i + rows * k] * sum;
        }
    }
    return most;
}

/* Apply reflector k of the factors to a vector. */
static void reflect(int rows, const double *a, const double *scales, int k, double *vector) {
    double sum = vector[k];
    for (int i = k + 1; i < rows; i++) sum += a[i + rows * k] * vector[i];
    sum *= scales[k];
    vector[k] -= sum;
    for (int i = k + 1; i < rows; i++) vector[i] -= a[i + rows * k] * sum;
}

/* Number of doubles and ints that `least_squares` and `null_space` need at most. */
#define SQUARES_WORK(rows, columns) \
    ((rows) * (columns) + (columns) * (columns) + 4 * (columns) + 2 * (rows))
#define SQUARES_ORDERS(rows, columns) ((rows) + 2 * (columns))

/* The shortest x with the least |a x - b|, by complete orthogonal decomposition. */
static void least_squares(
    int rows, int columns, const double *a, const double *b, double *x, double tolerance, double *work, int *orders
) {
    double *factors = work, *scales = factors + rows * columns, *right = scales + columns;
    double *turned = right + (rows > columns ? rows : columns), *turned_scales = turned + columns * columns;
    int *order = orders, *unused = orders + columns;
    memcpy(factors, a, sizeof(double) * (size_t)(rows * columns));
    memcpy(right, b, sizeof(double) * (size_t)rows);
    const int rank = orthogonalize(rows, columns, factors, scales, order, tolerance);
    for (int k = 0; k < rank; k++) reflect(rows, factors, scales, k, right);
    /* [R11 R12] y = c with the shortest y: the transpose is decomposed once more. */
    for (int k = 0; k < rank; k++) {
        for (int j = 0; j < columns; j++) turned[j + columns * k] = j >= k ? factors[k + rows * j] : 0.0;
    }
    orthogonalize(columns, rank, turned, turned_scales, unused, 0.0);
    /* The pivoting of this second decomposition permutes the equations of c. */
    double *y = turned_scales + columns;
    for (int k = 0; k < columns; k++) y[k] = 0.0;
    for (int k = 0; k < rank; k++) {
        double value = right[unused[k]];
        for (int i = 0; i < k; i++) value -= turned[i + columns * k] * y[i];
        y[k] = value / turned[k + columns * k];
    }
    for (int k = rank - 1; k >= 0; k--) reflect(columns, turned, turned_scales, k, y);
    for (int j = 0; j < columns; j++) x[order[j]] = y[j];
}

/* An orthonormal basis of all x with a x = 0, columns of `basis`; returns their number. */
static int null_space(
    int rows, int columns, const double *a, double *basis, double tolerance, double *work, int *orders
) {
    double *turned = work, *scales = turned + rows * columns;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) turned[j + columns * i] = a[i + rows * j];
    }
    const int rank = rows == 0 ? 0 : orthogonalize(columns, rows, turned, scales, orders, tolerance);
    for (int j = rank; j < columns; j++) {
        double *vector = basis + columns * (j - rank);
        for (int i = 0; i < columns; i++) vector[i] = i == j ? 1.0 : 0.0;
        for (int k = rank - 1; k >= 0; k--) reflect(columns, turned, scales, k, vector);
    }
    return columns - rank;
}
