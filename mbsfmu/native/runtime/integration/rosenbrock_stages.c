/* Stages of linearly implicit methods: what is solved for in each. */

#if FACTORS > 0

/* -- in loops, with factors along the tree in the memory `factors`; as mbsfmu/formulations/recorded_steps.py -------- */

/* Where a step begins. */
typedef struct Linearization {
    double share;                       /* h gamma */
} Linearization;

/* Bring the arguments to where the state is. */
static int find_derivatives(Instance *instance, const Attempt *attempt) {
    return load_begin(instance, attempt->time, attempt->start);
}

/* Prepare solutions for h gamma, where a step is tried. */
static int factorize_step(Instance *instance, const Attempt *attempt) {
    const Parts *parts = &instance->parts;
    double pivots[ROOM(PIVOTS)];
    if (!load_begin(instance, attempt->time, attempt->start)) return 0;
    *parts->step = instance->linearization->share = attempt->step * DIAGONAL;
    step_factors(parts, pivots);
    return all_finite(pivots, PIVOTS) || fail(instance, "the matrix of the step is singular");
}

/* Whether an increment solves what it should: no rows of the matrix have been exchanged. */
static int is_solved(Instance *instance, Attempt *attempt, const double *right, const double *increment) {
    const Parts *parts = &instance->parts;
    double missing[ROOM(CONTROLLED)];
    if (!load_begin(instance, attempt->time, attempt->start)) return 0;
    COPY(parts->right, increment, CONTROLLED);
    first_order_left(parts, missing);
    for (int i = 0; i < CONTROLLED; i++) missing[i] = instance->linearization->share * (missing[i] - right[i]);
    return size_of(instance, CONTROLLED, attempt->start, attempt->start, missing) <= UNSOLVED;
}

/* Solve for one stage; the right side becomes the increment. */
static int solve_stage(Instance *instance, Attempt *attempt, int stage) {
    const Parts *parts = &instance->parts;
    double before[ROOM(CONTROLLED)], *const right = attempt->increments + SIZE * stage;
    COPY(before, right, CONTROLLED);
    COPY(parts->right, right, CONTROLLED);
    COPY(parts->right_of_integrals, right + CONTROLLED, INTEGRALS);
    step_changes(parts, right);
    if (stage > 0 || is_solved(instance, attempt, before, right)) return 1;
    return fail(instance, "the equations of the step are not solved: pivots are small");
}

#else

/* -- with a matrix; as mbsfmu/stepping/stages.py -------------------------------------------------------------------- */

#if ELIMINATED
#include "sparse.c"
#endif
#define INTEGRALS_BY_ELEMENT (ELIMINATED && 2 * INTEGRAL_ELEMENTS < INTEGRALS * CONTROLLED)

/* Where a step begins, and what is solved with the derivatives there. */
typedef struct Linearization {
    double *slope;                      /* shape (SLOPES, CONTROLLED) */
    double *factors;                    /* shape (SOLVED, SOLVED) */
    double share;                       /* h gamma */
    int pivots[ROOM(SOLVED)];
#if ELIMINATED
    Elements elements;
#endif
#if INTEGRALS_BY_ELEMENT
    double of_integrals[ROOM(INTEGRAL_ELEMENTS)]; /* derivatives of their rates that may be other than zero */
#endif
} Linearization;

/* Find the derivatives where the state is. */
static inline int find_derivatives(Instance *instance, const Attempt *attempt) {
    Linearization *const begin = instance->linearization;
    begin->slope = scratch_of_stages(&instance->parts) + ATTEMPT;
    begin->factors = begin->slope + SLOPES * CONTROLLED;
    if (!find_slope(instance, attempt->time, begin->slope)) return 0;
#if INTEGRALS_BY_ELEMENT
    for (int k = 0; k < INTEGRAL_ELEMENTS; k++) {
        begin->of_integrals[k] = begin->slope[SOLVED + integral_elements[k][0] + SLOPES * integral_elements[k][1]];
    }
#endif
    return all_finite(begin->slope, SLOPES * CONTROLLED) || fail(instance, "the derivatives of the equations are not finite");
}

/* The element of the matrix for h gamma that follows from the derivatives. */
static inline double element_of(const double *slope, double share, int i, int j) {
    double sum = -slope[i + SLOPES * (CHAINED + j)];
    if (j < CHAINED) sum -= share * slope[i + SLOPES * j];
    return i == j ? sum + 1.0 / share : sum;
}

#if ELIMINATED

/* Prepare solutions for h gamma, where a step is tried. */
static int factorize_step(Instance *instance, const Attempt *attempt) {
    Linearization *const begin = instance->linearization;
    double scales[ROOM(SOLVED)];
    int places[ROOM(SOLVED)];
    const double share = begin->share = attempt->step * DIAGONAL;
    for (int i = 0; i < SOLVED; i++) {
        places[elimination_order[i]] = i;
        scales[i] = explicit_scales[CHAINED + elimination_order[i]];
    }
    memset(begin->factors, 0, sizeof(double) * SOLVED * SOLVED);
    for (int k = 0; k < STAGE_ELEMENTS; k++) {
        const int i = stage_elements[k][0], j = stage_elements[k][1];
        begin->factors[places[i] + SOLVED * places[j]] = element_of(begin->slope, share, i, j);
    }
    return factorize_sparse(begin->factors, scales, begin->pivots, &begin->elements)
        || fail(instance, "the matrix of the step is singular");
}

/* Solve with its factors. */
static inline void solve_step(const Linearization *begin, double *solved) {
    double ordered[ROOM(SOLVED)];
    for (int i = 0; i < SOLVED; i++) ordered[i] = solved[elimination_order[i]];
    substitute_sparse(begin->factors, begin->pivots, &begin->elements, ordered);
    for (int i = 0; i < SOLVED; i++) solved[elimination_order[i]] = ordered[i];
}

#else

/* Prepare solutions for h gamma, where a step is tried. */
static int factorize_step(Instance *instance, const Attempt *attempt) {
    Linearization *const begin = instance->linearization;
    const double share = begin->share = attempt->step * DIAGONAL;
    for (int j = 0; j < SOLVED; j++) {
        for (int i = 0; i < SOLVED; i++) begin->factors[i + SOLVED * j] = element_of(begin->slope, share, i, j);
    }
    return factorize(SOLVED, begin->factors, begin->pivots) || fail(instance, "the matrix of the step is singular");
}

/* Solve with its factors. */
static inline void solve_step(const Linearization *begin, double *solved) {
    substitute(SOLVED, begin->factors, begin->pivots, solved);
}

#endif

/* Add what the integrals' rates change with an increment; element by element where most are zero. */
static inline void add_to_integrals(const Linearization *begin, const double *increment, double *integrals) {
#if INTEGRALS_BY_ELEMENT
    for (int k = 0; k < INTEGRAL_ELEMENTS; k++) {
        integrals[integral_elements[k][0]] += begin->of_integrals[k] * increment[integral_elements[k][1]];
    }
#else
    add_columns(CONTROLLED, INTEGRALS, begin->slope + SOLVED, SLOPES, increment, integrals);
#endif
}

/* Solve for one stage; the right side becomes the increment. */
static inline int solve_stage(Instance *instance, Attempt *attempt, int stage) {
    const Linearization *const begin = instance->linearization;
    double *const right = attempt->increments + SIZE * stage, *const solved = right + CHAINED;
    double weights[ROOM(CHAINED)], *const integrals = right + CONTROLLED;
    for (int j = 0; j < CHAINED; j++) weights[j] = begin->share * right[j];
    add_columns(CHAINED, SOLVED, begin->slope, SLOPES, weights, solved);
    solve_step(begin, solved);
    for (int j = 0; j < CHAINED; j++) right[j] = begin->share * (solved[j] + right[j]);
    add_to_integrals(begin, right, integrals);
    for (int i = 0; i < INTEGRALS; i++) integrals[i] *= begin->share;
    return 1;
}

#endif
