/* Linear equations of several machines at once, one a lane; matrices are stored column by column. */

/* Swap two rows (stride 1) or columns (stride n) of a square matrix in some lanes. */
static inline void swap_lanes(int n, Lanes *one, Lanes *other, int apart, Mask mask) {
    for (int j = 0; j < n; j++) {
        const Lanes a = one[apart * j], b = other[apart * j];
        one[apart * j] = select_lanes(mask, b, a);
        other[apart * j] = select_lanes(mask, a, b);
    }
}

/* Invert matrices in place by Gauss and Jordan's elimination, each lane with row pivots of its own. Returns the lanes where a
 * pivot is zero. */
static FLAT Mask invert_lanes(int n, Lanes *a, Mask *pivots) {
    Mask singular = {0};
    for (int k = 0; k < n; k++) {
        Lanes *const column = a + n * k;
        Lanes best = lanes_fabs(column[k]);
        Mask pivot = splat_integer(k);
        for (int i = k + 1; i < n; i++) {
            const Lanes size = lanes_fabs(column[i]);
            const Mask better = size > best;
            best = select_lanes(better, size, best);
            pivot = select_integers(better, splat_integer(i), pivot);
        }
        pivots[k] = pivot;
        singular |= best == (Lanes){0};
        const unsigned moved = bits_of(pivot != splat_integer(k));
        for (int i = k + 1; moved && i < n; i++) {
            const Mask here = pivot == splat_integer(i);
            if (bits_of(here)) swap_lanes(n, a + k, a + i, n, here);
        }
        const Lanes share = 1.0 / column[k];
        for (int j = 0; j < n; j++) {
            Lanes *const changed = a + n * j;
            if (j == k || !bits_of(is_true(changed[k]))) continue;
            const Lanes factor = changed[k] * share;
            for (int i = 0; i < n; i++) changed[i] -= column[i] * factor;
            changed[k] = factor;
        }
        for (int i = 0; i < n; i++) column[i] *= -share;
        column[k] = share;
    }
    for (int k = n - 1; k >= 0; k--) {
        if (!bits_of(pivots[k] != splat_integer(k))) continue;
        for (int i = k + 1; i < n; i++) {
            const Mask here = pivots[k] == splat_integer(i);
            if (bits_of(here)) swap_lanes(n, a + n * k, a + n * i, 1, here);
        }
    }
    return singular;
}

/* The product of a matrix and a vector; four rows at a time, whose sums do not wait for each other. */
static FLAT void multiply_lanes(int rows, int columns, const Lanes *matrix, const Lanes *vector, Lanes *product) {
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
        Lanes a = {0}, b = {0}, c = {0}, d = {0};
        const Lanes *column = matrix + i;
        for (int j = 0; j < columns; j++, column += rows) {
            a += column[0] * vector[j];
            b += column[1] * vector[j];
            c += column[2] * vector[j];
            d += column[3] * vector[j];
        }
        product[i] = a;
        product[i + 1] = b;
        product[i + 2] = c;
        product[i + 3] = d;
    }
    for (; i < rows; i++) {
        Lanes sum = {0};
        for (int j = 0; j < columns; j++) sum += matrix[i + rows * j] * vector[j];
        product[i] = sum;
    }
}

/* The linear equations of algebraic loops, lane by lane: what solves them takes a matrix and right sides, of which there are
 * `made` numbers, among `taken` in all. */
static inline void solve_by_lane(
    void (*solve)(const double *, const double *, double *), int taken, int made, const Lanes *given, Lanes *found,
    double *numbers
) {
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < taken; i++) numbers[i] = given[i][lane];
        solve(numbers, numbers + taken - made, numbers + taken);
        for (int i = 0; i < made; i++) found[i][lane] = numbers[taken + i];
    }
}
