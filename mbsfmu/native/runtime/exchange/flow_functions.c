/* What equations for somebody else's solver are made of, and what they give. */
#if KEEPS_JACOBIAN

/* What the Jacobians of all formulations have in common: move the columns of a matrix without the rows of chained states to
 * where they stand with these rows, and write these: the rate of each is the element of y that follows them. */
static void insert_chained(double *matrix, int columns, int chained) {
    const int rows = POINT - chained;
    for (int j = columns - 1; j >= 0; j--) {
        double *const column = matrix + POINT * j;
        memmove(column + chained, matrix + rows * j, sizeof(double) * (size_t)rows);
        for (int i = 0; i < chained; i++) column[i] = j == chained + i ? 1.0 : 0.0;
    }
}

#endif
#include FORMULATION_FILE

typedef char point_has_room[POINT == SIZE ? 1 : -1];

const FlowFunctions flow_functions = {
    pack,
    pack_rates,
    rates_of,
    reach,
    describe,
    loops_closed,
#if KEEPS_JACOBIAN
    find_jacobian,
    find_input_jacobian,
#endif
#if CHANGES_KNOWN
    find_change,
#endif
};
