/* Calls of kernels by tables, shared by threads.
 *
 * A table's stretches belong to phases, one after the other: in some, calls are many and depend on none in the same
 * phase. These are cut into as many parts as there are threads, of equal cost. In others, sections depend on none of
 * the others, and threads share these. Each call computes what it computes, whoever makes it: results are those of one
 * thread to the last bit. */
#ifndef MBSFMU_SHARES_H
#define MBSFMU_SHARES_H

#include "pool.h"

/* What takes part in a table: kernels with what a call costs, and how many fields move on and are listed; phases, each with 0
 * where it is for one thread, 1 where calls are shared, else how many sections there are, and then the length of its
 * part of the table, or of that of each section; −1 behind them. */
typedef struct {
    const int *table, *phases, (*kernels)[3];
    KernelCall call;
} Loops;

/* A place in a table: before a repetition of a stretch. */
typedef struct {
    const int *stretch;
    int repetition;
} Cut;

typedef struct Plan {
    const Loops *loops;
    Cut *cuts;          /* by phase where each thread begins, and where the last one ends */
    int *is_shared;     /* by phase */
    int phases;
    struct Plan *next;
} Plan;

struct Team {
    Pool *pool;
    int threads;        /* as many as were wished for */
    Plan *plans;
};

/* Where the next stretch begins, and what all calls of this one cost. */
static const int *behind(const Loops *loops, const int *stretch, double *cost) {
    const int calls = stretch[0], count = stretch[1];
    const int *next = stretch + 2;
    *cost = 0.0;
    for (int k = 0; k < calls; k++) {
        const int *kernel = loops->kernels[*next];
        *cost += (double)count * kernel[0];
        next += 1 + (1 + kernel[1]) * (count > 1 ? 2 : 1) + kernel[2] * count;
    }
    return next;
}

/* Cut what is between two places in a table into parts of equal cost. */
static void cut_phase(const Loops *loops, const int *begin, const int *end, int threads, Cut *cuts) {
    double whole = 0.0, cost, before = 0.0;
    for (const int *at = begin; at != end;) at = behind(loops, at, &cost), whole += cost;
    int thread = 0;
    for (const int *at = begin; at != end;) {
        const int *next = behind(loops, at, &cost);
        const double each = cost / at[1];
        for (; thread < threads && before + cost > whole * thread / threads; thread++) {
            const int repetition = (int)((whole * thread / threads - before) / each + 0.5);
            cuts[thread].stretch = repetition < at[1] ? at : next;
            cuts[thread].repetition = repetition < at[1] ? repetition : 0;
        }
        before += cost;
        at = next;
    }
    for (; thread <= threads; thread++) cuts[thread].stretch = end, cuts[thread].repetition = 0;
}

/* Share out as many sections, whose lengths are given; return where the next phase begins in the table. */
static const int *cut_sections(const int *begin, const int *lengths, int sections, int threads, Cut *cuts) {
    int thread = 0;
    for (int section = 0; section < sections; section++) {
        for (; thread < threads && thread * sections <= section * threads; thread++) cuts[thread].stretch = begin;
        begin += lengths[section];
    }
    for (; thread <= threads; thread++) cuts[thread].stretch = begin;
    return begin;
}

static Plan *plan_of(struct Team *team, const Loops *loops) {
    for (Plan *plan = team->plans; plan; plan = plan->next) {
        if (plan->loops == loops) return plan;
    }
    const int threads = pool_size(team->pool);
    Plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->loops = loops;
    for (const int *phase = loops->phases; *phase >= 0; phase += 1 + (*phase > 1 ? *phase : 1)) plan->phases++;
    plan->cuts = calloc((size_t)plan->phases * (size_t)(threads + 1) + 1, sizeof *plan->cuts);
    plan->is_shared = calloc((size_t)plan->phases + 1, sizeof *plan->is_shared);
    if (!plan->cuts || !plan->is_shared) {
        free(plan->cuts);
        free(plan->is_shared);
        free(plan);
        return NULL;
    }
    const int *at = loops->table, *sections = loops->phases;
    for (int phase = 0; phase < plan->phases; phase++) {
        Cut *cuts = &plan->cuts[phase * (threads + 1)];
        const int count = *sections++;
        plan->is_shared[phase] = count > 0;
        if (count > 1) {
            at = cut_sections(at, sections, count, threads, cuts);
            sections += count;
        } else {
            const int *end = at + *sections++;
            cut_phase(loops, at, end, count ? threads : 1, cuts);
            at = end;
        }
    }
    plan->next = team->plans;
    return team->plans = plan;
}

typedef struct {
    double *work;
    KernelCall call;
    const Cut *cuts;
} Shared;

static void run_part(void *given, int thread) {
    const Shared *shared = given;
    const Cut *begin = &shared->cuts[thread], *end = begin + 1;
    const int *at = begin->stretch;
    int repetition = begin->repetition;
    while (at != end->stretch) {
        at = run_stretch(shared->work, at, repetition, at[1], shared->call);
        repetition = 0;
    }
    if (repetition < end->repetition) run_stretch(shared->work, at, repetition, end->repetition, shared->call);
}

static void disband(struct Team *team) {
    if (!team) return;
    pool_free(team->pool);
    while (team->plans) {
        Plan *plan = team->plans;
        team->plans = plan->next;
        free(plan->cuts);
        free(plan->is_shared);
        free(plan);
    }
    free(team);
}

/* The threads of an instance, as many as are wished for; NULL where there are no more than one. */
static struct Team *team_of(struct Team **kept, int threads) {
    struct Team *team = *kept;
    if (team && team->threads == threads && !pool_is_lost(team->pool)) return team;
    disband(team);
    *kept = NULL;
    if (threads < 2) return NULL;
    team = calloc(1, sizeof *team);
    if (!team) return NULL;
    team->threads = threads;
    team->pool = pool_new(threads);
    if (!team->pool) {
        free(team);
        return NULL;
    }
    return *kept = team;
}

/* Run a table with the threads of an instance. */
static void share_table(struct Team **kept, int threads, double *work, const Loops *loops) {
    struct Team *team = team_of(kept, threads);
    const Plan *plan = team && pool_size(team->pool) > 1 ? plan_of(team, loops) : NULL;
    if (!plan) {
        run_table(work, loops->table, loops->call);
        return;
    }
    const int stride = pool_size(team->pool) + 1;
    pool_begin(team->pool);
    for (int phase = 0; phase < plan->phases; phase++) {
        Shared shared = {work, loops->call, &plan->cuts[phase * stride]};
        if (plan->is_shared[phase]) {
            pool_share(team->pool, run_part, &shared);
        } else {
            run_part(&shared, 0);
        }
    }
    pool_end(team->pool);
}

#endif
