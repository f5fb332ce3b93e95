/* Newton iteration for the equations of a step [Jaiswal2021, eq. 37], with iteration matrices that are kept while they converge;
 * mbsfmu/integration/newton.py says how. */

typedef struct {
    double unknowns[ROOM(ALL_UNKNOWNS)], residual[ROOM(ALL_UNKNOWNS)], increment[ROOM(ALL_UNKNOWNS)];
    double *made;                       /* where an iteration matrix is made, with as much room behind it to work on */
    const double *inverse;              /* what is kept of the iteration matrix that was used last */
    int count, iteration_matrices, evaluations;   /* increments, iteration matrices and evaluations of the residual until now */
    double rate;                        /* by which increments by it shrink; 0 where that is not known yet */
    double spent;                       /* on all of it, in evaluations */
    int own;                            /* the next increment is the first of an iteration matrix that is made where it begins */
    int evaluated;                      /* the residual was last evaluated at the solution */
    double first;                       /* the largest residual at the guess */
    double weight;                      /* of errors of coordinates */
    double unconverged;                 /* the increment that would come next by its tolerances; 0 where it converged */
} Iteration;

#if FACTORS > 0
#include "factored_iteration_matrix.c"
#else
#include "dense_iteration_matrix.c"
#endif

static inline double magnitude_of(const double *unknowns, int i) { return larger(unknown_nominals[i], fabs(unknowns[i])); }

static double share_of(const double *unknowns, const double *increment, int i) {
    return fabs(increment[i]) / (unknown_tolerances[i] * magnitude_of(unknowns, i));
}

/* Weigh errors of coordinates by their first increment, but at rest. */
static void weigh_errors(const State *state, double step, Iteration *iteration) {
    double own = 0.0;
    int moves = 0;
    for (int j = 0; j < COORDINATES; j++) {
        moves |= step * fabs(state->velocities[j]) > STILL * larger(1.0, fabs(state->coordinates[j]));
    }
    iteration->weight = 1.0;
    if (!moves) return;
    for (int i = 0; i < UNKNOWNS - STATES; i++) own = larger(share_of(iteration->unknowns, iteration->increment, i), own);
    iteration->weight = own * HEAVIEST < SMALL_FIRST ? HEAVIEST : larger(1.0, SMALL_FIRST / own);
}

/* The largest part of the increment by its tolerance; not finite where one is not. Writes what that counts. */
static double size_of(const Iteration *iteration, double *counted) {
    double size = 0.0;
    *counted = 0.0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double share = share_of(iteration->unknowns, iteration->increment, i);
        if (!(share <= size)) size = share;
        *counted = larger((i < UNKNOWNS - STATES ? iteration->weight : LIGHT) * share, *counted);
    }
    return size;
}

/* Whether increments no longer shrink, and by how little; the iteration's rate says how they did until now. */
static int is_round_off(const Iteration *iteration, double rate) {
    const int fast = iteration->count > 1 && iteration->rate < FAST;
    const double share = iteration->iteration_matrices > 0 || fast ? ROUNDED : FLOOR;
    if (!(rate > (iteration->iteration_matrices > 0 ? STAGNATING : SLOW))) return 0;
    for (int i = 0; i < UNKNOWNS; i++) {
        if (!(fabs(iteration->increment[i]) <= share * magnitude_of(iteration->unknowns, i))) return 0;
    }
    return 1;
}

/* The unknown that moves most, by its tolerance; writes how far, and the tolerance. */
static int most_moving(const double *unknowns, const double *increment, double *moves, double *allowed) {
    double most = -1.0;
    int unknown = 0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double size = fabs(increment[i]), limit = unknown_tolerances[i] * magnitude_of(unknowns, i);
        if (size / limit > most) {
            most = size / limit;
            unknown = i;
            *moves = size;
            *allowed = limit;
        }
    }
    return unknown;
}

static int evaluate_here(Instance *instance, Problem *problem, Iteration *iteration) {
    iteration->evaluations++;
    return evaluate(instance, problem, iteration->unknowns, iteration->residual);
}

/* Make the iteration matrix where the iteration is. */
static int refresh(Instance *instance, Iteration *iteration) {
    if (!make_iteration_matrix(instance, iteration->made)) {
        return fail(instance, "the equations of the step are singular in iteration %d", iteration->count + 1);
    }
    iteration->inverse = iteration->made;
    iteration->rate = 0.0;
    iteration->iteration_matrices++;
    iteration->own = 1;
    return 1;
}

/* How far the solution is still off behind an increment, by the tolerances. */
static double left_behind(const Iteration *iteration, double counted) {
    return iteration->rate < 1.0 ? iteration->rate / (1.0 - iteration->rate) * counted : HUGE_VAL;
}

/* Whether to go on with the present iteration matrix takes longer than with a new one. */
static int exceeds_refresh_cost(const Iteration *iteration, double rate, double size, double counted) {
    int evaluations = 0;
    if (iteration->count == 1 && size <= 1.0 && rate < 1.0) return 0;
    if (iteration->rate >= SLOW) return 1;
    for (double left = left_behind(iteration, counted); left > REMAINING; left *= iteration->rate) evaluations++;
    return evaluations > REFRESH_COST + FRESH;
}

/* Write what to say of an iteration whose increments shrink by a ratio, the last one as a share of magnitudes. */
static void say_what_happens(char *text, size_t room, const Iteration *iteration, double rate, double size) {
    const double left = largest_magnitude(iteration->residual, ALL_UNKNOWNS) / iteration->first;
    text[0] = '\0';
    if (!(rate > STAGNATING)) return;
    if (size <= NEAR) {
        snprintf(text, room, "; increments hardly decrease, its tolerance may be too small");
        return;
    }
    snprintf(
        text, room, "; the iteration %s, and the residual is %.2g times what it was at first",
        rate >= 1.0 ? "diverges: increments grow" : "stalls: increments hardly decrease", left
    );
}

/* Whether one more iteration matrix may help; else there is a reason. */
static int can_refresh(Instance *instance, const Iteration *iteration, double rate) {
    double moves = 0.0, allowed = 0.0;
    char how[160];
    if (iteration->iteration_matrices == 0 && rate >= 1.0) return fail(instance, "the iteration matrix of an earlier step does not converge");
    if (iteration->iteration_matrices < NEWTON_ITERATIONS || MOST_INCREMENTS > 0) return 1;
    const int worst = most_moving(iteration->unknowns, iteration->increment, &moves, &allowed);
    say_what_happens(how, sizeof how, iteration, rate, moves / magnitude_of(iteration->unknowns, worst));
    return fail(
        instance, "after %d iterations %s still moves by %.3g, tolerance %.3g%s", iteration->iteration_matrices,
        unknown_name(instance, worst), moves, allowed, how
    );
}

/* Iterate to the end, from the guess of a problem on; returns 0 with a reason. */
static int iterate_step(Instance *instance, Problem *problem, double step, Iteration *iteration) {
    double *const unknowns = iteration->unknowns, *const increment = iteration->increment;
    double before = HUGE_VAL;
    memcpy(unknowns, problem->guess, sizeof(double) * ALL_UNKNOWNS);
    if (!evaluate_here(instance, problem, iteration)) return 0;
    iteration->first = largest_magnitude(iteration->residual, ALL_UNKNOWNS);
    if (iteration->own && !refresh(instance, iteration)) return 0;
    for (;;) {
        solve_iteration_matrix(instance, iteration->inverse, iteration->residual, increment);
        for (int i = 0; i < ALL_UNKNOWNS; i++) increment[i] = -increment[i];
        if (iteration->count == 0) weigh_errors(&instance->state, step, iteration);
        double counted;
        const double size = size_of(iteration, &counted), rate = size / before;
        if (!(size - size == 0.0)) {
            return loops_hold(instance)
                && fail(instance, "the equations of the step are not finite in iteration %d", iteration->count + 1);
        }
        const int spent = MOST_INCREMENTS > 0 && iteration->count == MOST_INCREMENTS;
        iteration->evaluated = counted <= REMAINING || spent;
        if (iteration->evaluated) {
            iteration->unconverged = counted <= REMAINING ? 0.0 : size;
            return 1;
        }
        const int ends = is_round_off(iteration, rate);
        const int own = iteration->own, chord = !own && before < HUGE_VAL && !ends;
        if (chord) {
            iteration->rate = larger(rate, FADING * iteration->rate);
            if (MOST_INCREMENTS > 0 || exceeds_refresh_cost(iteration, rate, size, counted)) {
                if (!can_refresh(instance, iteration, rate) || !refresh(instance, iteration)) return 0;
                continue;
            }
        }
        for (int i = 0; i < ALL_UNKNOWNS; i++) unknowns[i] += increment[i];
        iteration->count++;
        if (ends || (own && size <= 1.0) || (chord && left_behind(iteration, counted) <= REMAINING)) return 1;
        before = size;
        iteration->own = 0;
        if (!evaluate_here(instance, problem, iteration)) return 0;
    }
}

/* Begin with the iteration matrix that the state keeps, where it is one of such a step. */
static void reuse_iteration_matrix(Instance *instance, double step, Iteration *iteration) {
    const State *state = &instance->state;
    const double *use = state->iteration_matrix_use, before = HISTORY > 0 ? state->history[0] : 0.0;
    iteration->made = scratch_of_iteration_matrix(&instance->parts);
    iteration->count = iteration->iteration_matrices = iteration->evaluations = 0;
    iteration->rate = use[4];
    iteration->unconverged = 0.0;
    iteration->own = MOST_INCREMENTS > 0 || use[0] == 0.0 || !(fabs(step - use[0]) <= SAME_STEP * use[0])
        || !(fabs(before - use[1]) <= SAME_STEP * use[1]);
    if (iteration->own) return;
    iteration->inverse = state->iteration_matrix;
    restore_iteration_matrix(instance);
}

/* Keep the iteration matrix that was used last; none where a new one is due. */
static void store_iteration_matrix(Instance *instance, double step, const Iteration *iteration) {
    State *state = &instance->state;
    double *const use = state->iteration_matrix_use;
    const double spent = iteration->spent;
    if (iteration->iteration_matrices > 0) {
        if (!instance->has_replaced) COPY(instance->replaced, state->iteration_matrix, ITERATION_MATRIX);
        instance->has_replaced = 1;
        COPY(state->iteration_matrix, iteration->made, ITERATION_MATRIX);
        use[0] = step;
        use[1] = HISTORY > 0 ? state->history[0] : 0.0;
        use[2] = 1.0;
        use[3] = spent;
        use[4] = iteration->rate;
    } else if (spent * use[2] > use[3]) {
        forget_iteration_matrix(state);
    } else {
        use[2] += 1.0;
        use[3] += spent;
        use[4] = iteration->rate;
    }
}

/* Solve the equations of a step; returns 0 with a reason. Where an iteration matrix of an earlier step does not converge, the iteration
 * begins again with one of its own. */
static int newton(Instance *instance, Problem *problem, double step, Iteration *iteration) {
    int wasted = 0;
    begin(instance, problem, step);
    reuse_iteration_matrix(instance, step, iteration);
    if (!iterate_step(instance, problem, step, iteration)) {
        if (iteration->own || iteration->iteration_matrices > 0) return 0;
        wasted = iteration->evaluations;
        begin(instance, problem, step);
        iteration->count = iteration->evaluations = 0;
        iteration->own = 1;
        if (!iterate_step(instance, problem, step, iteration)) return 0;
    }
    iteration->spent = wasted + iteration->evaluations + REFRESH_COST * iteration->iteration_matrices;
    return 1;
}
