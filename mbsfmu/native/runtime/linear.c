/* Small dense linear systems. Matrices are stored column by column: a[i + rows * j]. */

static inline double largest_magnitude(const double *values, int count) {
    double largest = 0.0;
    for (int i = 0; i < count; i++) {
        if (!(fabs(values[i]) <= largest)) largest = fabs(values[i]); /* NaN is larger than everything */
    }
    return largest;
}

static inline double magnitude(const double *values, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += values[i] * values[i];
    return sqrt(sum);
}

static inline int all_finite(const double *values, int count) {
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
