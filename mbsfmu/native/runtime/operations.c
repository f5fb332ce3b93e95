/* Tables of operations in place of code that nobody has compiled yet: for each, four numbers of two bytes, its code, where
 * its result goes in the working memory, and what it takes from there. Constants, arguments and results are known by
 * their numbers. */

#include "model.h"
#include "operations.h"

void operate(
    const char *table, int count, const double *constants, const double *const *given, double *const *results, double *work
) {
    for (; count > 0; count--, table += 4 * sizeof(uint16_t)) {
        uint16_t at[4];
        memcpy(at, table, sizeof at);
        switch (at[0]) {
        case OPERATION_CONSTANT: work[at[1]] = constants[at[2]]; break;
        case OPERATION_GIVEN: work[at[1]] = given[at[2]][at[3]]; break;
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
