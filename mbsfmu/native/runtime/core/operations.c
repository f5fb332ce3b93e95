/* Tables of operations in place of code that nobody has compiled yet: for each, four numbers of two bytes, its code, where
 * its result goes in the working memory, and what it takes from there. Constants, arguments, results and solvers are
 * known by their numbers. Behind a call of a solver stand how many elements its matrix has, where in the working memory
 * it finds all that it takes and puts what it gives, and where these numbers are otherwise. Nothing here is of a model: it
 * is compiled once for all. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "extrema.h"
#include "operations.h"

static inline int listed(const char *table, int index) {
    uint16_t number;
    memcpy(&number, table + index * sizeof number, sizeof number);
    return number;
}

void operate(
    const char *table, int count, const double *constants, const double *const *given, double *const *results,
    const Solver *solvers, double *work
) {
    for (; count > 0; count--, table += 4 * sizeof(uint16_t)) {
        uint16_t at[4];
        memcpy(at, table, sizeof at);
        switch (at[0]) {
        case OPERATION_CONSTANT: work[at[1]] = constants[at[2]]; break;
        case OPERATION_GIVEN: work[at[1]] = given[at[2]][at[3]]; break;
        case OPERATION_CALL: {
            const char *const list = table + 4 * sizeof(uint16_t);
            const int rows = (2 + at[2] + at[3] + 3) / 4;
            double *const taken = work + listed(list, 1), *const made = taken + at[2];
            for (int i = 0; i < at[2]; i++) taken[i] = work[listed(list, 2 + i)];
            solvers[at[1]](taken, taken + listed(list, 0), made);
            for (int i = 0; i < at[3]; i++) work[listed(list, 2 + at[2] + i)] = made[i];
            count -= rows;
            table += 4 * sizeof(uint16_t) * rows;
            break;
        }
        case OPERATION_RESULT: results[at[1]][at[3]] = work[at[2]]; break;
#define OF(operation, result) \
        case operation: { \
            const double a = work[at[2]], b = work[at[3]]; \
            (void)b; \
            work[at[1]] = result; \
            break; \
        }
        OPERATIONS(OF)
#undef OF
        }
    }
}
