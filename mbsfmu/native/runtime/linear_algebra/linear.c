/* Small dense linear systems. Matrices are stored column by column: a[i + rows * j]. */

static inline double largest_magnitude(const double *values, int count) {
    double largest = 0.0;
    for (int i = 0; i < count; i++) {
        /* NaN is larger than everything, and stays so. */
        if (!(fabs(values[i]) <= largest) && largest == largest) largest = fabs(values[i]);
    }
    return largest;
}

/* Four sums side by side, as each addition would wait for the one before. */
static inline double magnitude(const double *values, int count) {
    double one = 0.0, two = 0.0, three = 0.0, four = 0.0;
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        one += values[i] * values[i];
        two += values[i + 1] * values[i + 1];
        three += values[i + 2] * values[i + 2];
        four += values[i + 3] * values[i + 3];
    }
    for (; i < count; i++) one += values[i] * values[i];
    return sqrt(one + two + three + four);
}

static inline int is_finite(double value) { return value - value == 0.0; }

/* Differences of numbers with themselves are zero or NaN; they are summed up side by side. */
static inline int all_finite(const double *values, int count) {
    double one = 0.0, two = 0.0, three = 0.0, four = 0.0;
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        one += values[i] - values[i];
        two += values[i + 1] - values[i + 1];
        three += values[i + 2] - values[i + 2];
        four += values[i + 3] - values[i + 3];
    }
    for (; i < count; i++) one += values[i] - values[i];
    return one + two + three + four == 0.0;
}

static inline int all_within(const double *values, int count, double most) {
    for (int i = 0; i < count; i++) {
        if (!(fabs(values[i]) <= most)) return 0;
    }
    return 1;
}

/* LU factors in place, partial pivoting. Returns 0 where a pivot is zero. */
static FLAT int factorize(int n, double *a, int *pivots) {
    for (int k = 0; k < n; k++) {
        int pivot = k, last = k; /* of the column: below, there is nothing to do, as of matrices with a band */
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i + n * k]) > fabs(a[pivot + n * k])) pivot = i;
            if (a[i + n * k] != 0.0) last = i;
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
        for (int i = k + 1; i <= last; i++) a[i + n * k] /= a[k + n * k];
        for (int j = k + 1; j < n; j++) {
            const double factor = a[k + n * j];
            if (factor == 0.0) continue;
            for (int i = k + 1; i <= last; i++) a[i + n * j] -= a[i + n * k] * factor;
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

/* Solve for several right sides, side by side; NaN where a pivot is zero. `room` is for factors, as many as the matrix has
 * elements. */
static FLAT void solve_linear(
    int n, int columns, const double *matrix, const double *right, double *room, int *pivots, double *found
) {
    memcpy(room, matrix, (size_t)(n * n) * sizeof *room);
    if (!factorize(n, room, pivots)) {
        for (int i = 0; i < n * columns; i++) found[i] = NAN;
        return;
    }
    memcpy(found, right, (size_t)(n * columns) * sizeof *found);
    for (int j = 0; j < columns; j++) substitute(n, room, pivots, found + n * j);
}

/* The inverse of a matrix that is overwritten. Returns 0 where a pivot is zero. */
static FLAT int invert(int n, double *a, double *inverse, int *pivots) {
    if (!factorize(n, a, pivots)) return 0;
    for (int k = 0; k < n; k++) {
        double *column = inverse + n * k;
        int place = k;
        for (int i = 0; i < n; i++) { /* where the one of the unit vector comes to */
            if (pivots[i] == place) place = i;
            else if (i == place) place = pivots[i];
        }
        for (int i = 0; i < n; i++) column[i] = i == place ? 1.0 : 0.0;
        for (int j = place; j < n; j++) {
            if (column[j] == 0.0) continue;
            for (int i = j + 1; i < n; i++) column[i] -= a[i + n * j] * column[j];
        }
        for (int j = n - 1; j >= 0; j--) {
            if (column[j] == 0.0) continue;
            column[j] /= a[j + n * j];
            for (int i = 0; i < j; i++) column[i] -= a[i + n * j] * column[j];
        }
    }
    return 1;
}

/* Add columns of a matrix by their weights, each `stride` behind the one before; four rows at a time stay where sums are made. */
static FLAT void add_columns(int columns, int rows, const double *matrix, int stride, const double *weights, double *sums) {
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
        double a = sums[i], b = sums[i + 1], c = sums[i + 2], d = sums[i + 3];
        const double *column = matrix + i;
        for (int k = 0; k < columns; k++, column += stride) {
            a += weights[k] * column[0];
            b += weights[k] * column[1];
            c += weights[k] * column[2];
            d += weights[k] * column[3];
        }
        sums[i] = a;
        sums[i + 1] = b;
        sums[i + 2] = c;
        sums[i + 3] = d;
    }
    for (; i < rows; i++) {
        double sum = sums[i];
        for (int k = 0; k < columns; k++) sum += weights[k] * matrix[i + stride * k];
        sums[i] = sum;
    }
}

/* The product of a square matrix and a vector; eight rows at a time, whose sums do not wait for each other. */
static FLAT void multiply(int n, const double *matrix, const double *vector, double *product) {
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0;
        for (int j = 0; j < n; j++) {
            const double *column = matrix + i + n * j, factor = vector[j];
            a += column[0] * factor;
            b += column[1] * factor;
            c += column[2] * factor;
            d += column[3] * factor;
            e += column[4] * factor;
            f += column[5] * factor;
            g += column[6] * factor;
            h += column[7] * factor;
        }
        product[i] = a;
        product[i + 1] = b;
        product[i + 2] = c;
        product[i + 3] = d;
        product[i + 4] = e;
        product[i + 5] = f;
        product[i + 6] = g;
        product[i + 7] = h;
    }
    for (; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++) sum += matrix[i + n * j] * vector[j];
        product[i] = sum;
    }
}
