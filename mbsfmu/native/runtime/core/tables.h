/* Calls of kernels by tables of where their numbers lie.
 *
 * A table is stretches, with a 0 behind them: how many calls are repeated in turn, and how often; of each call its
 * kernel, where its results are and where each of its fields begins, if they are repeated by how much these move on,
 * and then, for each repetition, where those fields begin that move on otherwise. Kernels return where the table goes
 * on. */
#ifndef MBSFMU_TABLES_H
#define MBSFMU_TABLES_H

typedef const int *(*KernelCall)(double *work, const int *call, int count, int begin, int end);

static inline void run_table(double *work, const int *table, KernelCall call) {
    while (*table) {
        const int calls = table[0], count = table[1];
        const int *const first = table + 2;
        if (calls == 1) {
            table = call(work, first, count, 0, count);
            continue;
        }
        for (int repetition = 0; repetition < count; repetition++) {
            table = first;
            for (int k = 0; k < calls; k++) table = call(work, table, count, repetition, repetition + 1);
        }
    }
}

/* Results are copied by the same form of table: places that are repeated in turn, and how often; the places, and by how
 * much each moves on. */
static inline void copy_results(const double *work, const int *table, double *result) {
    while (*table) {
        const int places = table[0], count = table[1];
        const int *by = table + 2 + places;
        for (int repetition = 0; repetition < count; repetition++) {
            for (int k = 0; k < places; k++) {
                const int moved = repetition ? repetition * by[k] : 0;
                *result++ = work[table[2 + k] + moved];
            }
        }
        table = count > 1 ? by + places : by;
    }
}

#endif
