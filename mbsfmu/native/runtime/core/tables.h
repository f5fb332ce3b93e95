/* Calls of kernels by tables of where their numbers lie.
 *
 * A table is stretches, with a 0 behind them: how many calls are repeated in turn, and how often; of each call its
 * kernel, where its results are and where each of its fields begins, if they are repeated by how much these move on,
 * and then, for each repetition, where those fields begin that move on otherwise. Kernels return where the table goes
 * on. */
#ifndef MBSFMU_TABLES_H
#define MBSFMU_TABLES_H

typedef const int *(*KernelCall)(double *work, const int *call, int count, int begin, int end);

/* Make the repetitions from `begin` to before `end` of a stretch; return where the next one begins in the table. */
static inline const int *run_stretch(double *work, const int *stretch, int begin, int end, KernelCall call) {
    const int calls = stretch[0], count = stretch[1];
    const int *next = stretch + 2;
    if (calls == 1) return call(work, next, count, begin, end);
    for (int repetition = begin; repetition < end; repetition++) {
        next = stretch + 2;
        for (int k = 0; k < calls; k++) next = call(work, next, count, repetition, repetition + 1);
    }
    return next;
}

static inline void run_table(double *work, const int *table, KernelCall call) {
    while (*table) table = run_stretch(work, table, 0, table[1], call);
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
