/* Linear systems most of whose elements are zero. Matrices are stored whole, as in linear.c, with rows and columns in an
 * order in which elimination keeps zeros; these are passed over. */

/* Share of the largest element of a column, of rows by their scales, that is enough for a pivot on the diagonal. */
#define PIVOT_SHARE 0.1

/* Where the factors of a matrix of n rows have elements: of each column the rows above the diagonal and those below. */
typedef struct {
    short above[SOLVED][ROOM(SOLVED)], below[SOLVED][ROOM(SOLVED)];
    short count_above[SOLVED], count_below[SOLVED];
} Elements;

/* The row whose element in a column is to be the pivot; returns -1 where all are zero. Writes the rows below that have
 * some, of the rows as they are. */
static int choose_pivot(const double *column, const double *scales, int k, short *rows, int *count) {
    double largest = 0.0;
    int pivot = -1, found = 0;
    for (int i = k; i < SOLVED; i++) {
        if (column[i] == 0.0) continue;
        const double size = fabs(column[i]) / scales[i];
        if (!(size <= largest)) {
            largest = size;
            pivot = i;
        }
        rows[found++] = (short)i;
    }
    *count = found;
    return pivot >= 0 && fabs(column[k]) >= PIVOT_SHARE * largest * scales[k] ? k : pivot;
}

static void swap_rows(double *a, double *scales, int i, int k) {
    double kept = scales[i];
    scales[i] = scales[k];
    scales[k] = kept;
    for (int j = 0; j < SOLVED; j++) {
        kept = a[i + SOLVED * j];
        a[i + SOLVED * j] = a[k + SOLVED * j];
        a[k + SOLVED * j] = kept;
    }
}

static void list_elements(const double *a, Elements *elements) {
    for (int j = 0; j < SOLVED; j++) {
        const double *column = a + SOLVED * j;
        short above = 0, below = 0;
        for (short i = 0; i < j; i++) {
            if (column[i] != 0.0) elements->above[j][above++] = i;
        }
        for (short i = (short)(j + 1); i < SOLVED; i++) {
            if (column[i] != 0.0) elements->below[j][below++] = i;
        }
        elements->count_above[j] = above;
        elements->count_below[j] = below;
    }
}

/* LU factors in place; rows are exchanged where pivots would be small. `scales` are magnitudes of the rows, which follow
 * them. Returns 0 where a pivot is zero. */
static int factorize_sparse(double *a, double *scales, int *pivots, Elements *elements) {
    short rows[ROOM(SOLVED)];
    for (int k = 0; k < SOLVED; k++) {
        double *const column = a + SOLVED * k;
        int count;
        const int pivot = choose_pivot(column, scales, k, rows, &count);
        if (pivot < 0) return 0;
        pivots[k] = pivot;
        if (pivot != k) {
            swap_rows(a, scales, pivot, k);
            choose_pivot(column, scales, k, rows, &count);
        }
        const double inverse = 1.0 / column[k];
        for (int m = 1; m < count; m++) column[rows[m]] *= inverse;
        for (int j = k + 1; j < SOLVED; j++) {
            const double factor = a[k + SOLVED * j];
            if (factor == 0.0) continue;
            for (int m = 1; m < count; m++) a[rows[m] + SOLVED * j] -= column[rows[m]] * factor;
        }
    }
    list_elements(a, elements);
    return 1;
}

/* Solve with the factors; b becomes the solution. */
static void substitute_sparse(const double *factors, const int *pivots, const Elements *elements, double *b) {
    for (int k = 0; k < SOLVED; k++) {
        const double kept = b[k];
        b[k] = b[pivots[k]];
        b[pivots[k]] = kept;
    }
    for (int j = 0; j < SOLVED; j++) {
        const double *column = factors + SOLVED * j;
        for (int m = 0; m < elements->count_below[j]; m++) b[elements->below[j][m]] -= column[elements->below[j][m]] * b[j];
    }
    for (int j = SOLVED - 1; j >= 0; j--) {
        const double *column = factors + SOLVED * j;
        b[j] /= column[j];
        for (int m = 0; m < elements->count_above[j]; m++) b[elements->above[j][m]] -= column[elements->above[j][m]] * b[j];
    }
}
