/* Linear systems most of whose elements are zero. Matrices are stored whole, as in linear.c, with rows and columns in an
 * order in which elimination keeps zeros; these are passed over. */

/* Where the factors of a matrix of n rows have elements: of each column the rows above the diagonal and those below. */
typedef struct {
    short above[SOLVED][ROOM(SOLVED)], below[SOLVED][ROOM(SOLVED)];
    short count_above[SOLVED], count_below[SOLVED];
} Elements;

/* Take a multiple of a column's elements in some rows from b. */
static inline void take_column(const double *column, const short *rows, int count, double factor, double *b) {
    for (const short *const end = rows + count; rows < end; rows++) {
        const int row = *rows;
        b[row] -= column[row] * factor;
    }
}

/* The row whose element in a column is to be the pivot; -1 where all are zero. */
static int choose_pivot(const double *column, const double *scales, int k) {
    double largest = 0.0;
    int pivot = -1;
    for (int i = k; i < SOLVED; i++) {
        if (column[i] == 0.0) continue;
        const double size = fabs(column[i]) / scales[i];
        if (!(size <= largest)) {
            largest = size;
            pivot = i;
        }
    }
    return pivot >= 0 && fabs(column[k]) >= PIVOT_SHARE * largest * scales[k] ? k : pivot;
}

/* Exchange two rows of the columns from k on. */
static void swap_rows(double *a, double *scales, int i, int k) {
    double kept = scales[i];
    scales[i] = scales[k];
    scales[k] = kept;
    for (int j = k; j < SOLVED; j++) {
        kept = a[i + SOLVED * j];
        a[i + SOLVED * j] = a[k + SOLVED * j];
        a[k + SOLVED * j] = kept;
    }
}

/* LU factors in place; rows are exchanged where pivots would be small, those of columns that are done stay as they are.
 * `scales` are magnitudes of the rows, which follow them. Returns 0 where a pivot is zero. */
static int factorize_sparse(double *a, double *scales, int *pivots, Elements *elements) {
    for (int k = 0; k < SOLVED; k++) elements->count_above[k] = 0;
    for (int k = 0; k < SOLVED; k++) {
        double *const column = a + SOLVED * k;
        short *const rows = elements->below[k];
        short found = 0;
        const int pivot = choose_pivot(column, scales, k);
        if (pivot < 0) return 0;
        pivots[k] = pivot;
        if (pivot != k) swap_rows(a, scales, pivot, k);
        for (int i = k + 1; i < SOLVED; i++) {
            if (column[i] == 0.0) continue;
            column[i] /= column[k];
            rows[found++] = (short)i;
        }
        elements->count_below[k] = found;
        for (int j = k + 1; j < SOLVED; j++) {
            double *const other = a + SOLVED * j;
            const double factor = other[k];
            if (factor == 0.0) continue;
            elements->above[j][elements->count_above[j]++] = (short)k;
            take_column(column, rows, found, factor, other);
        }
    }
    return 1;
}

/* Solve with the factors; b becomes the solution. */
static void substitute_sparse(const double *factors, const int *pivots, const Elements *elements, double *b) {
    for (int j = 0; j < SOLVED; j++) {
        const double kept = b[pivots[j]];
        b[pivots[j]] = b[j];
        b[j] = kept;
        take_column(factors + SOLVED * j, elements->below[j], elements->count_below[j], kept, b);
    }
    for (int j = SOLVED - 1; j >= 0; j--) {
        const double *const column = factors + SOLVED * j;
        b[j] /= column[j];
        take_column(column, elements->above[j], elements->count_above[j], b[j], b);
    }
}
