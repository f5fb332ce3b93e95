/* Newton iteration for the equations of a step [Jaiswal2021, eq. 37], with tangents that are kept while they converge;
 * mbsfmu/integration/newton.py says how. */

typedef struct {
    double unknowns[ROOM(ALL_UNKNOWNS)], residual[ROOM(ALL_UNKNOWNS)], increment[ROOM(ALL_UNKNOWNS)];
    double *made;                       /* where a tangent is made, with as much room behind it to work on */
    const double *inverse;              /* what is kept of the tangent that was used last */
    int count, tangents, evaluations;   /* increments, tangents and evaluations of the residual until now */
    double rate;                        /* by which increments by it shrink; 0 where that is not known yet */
    double spent;                       /* on all of it, in evaluations */
    int own;                            /* the next increment is the first of a tangent that is made where it begins */
    int evaluated;                      /* the residual was last evaluated at the solution */
    double first;                       /* the largest residual at the guess */
    double unconverged;                 /* the increment that would come next by its tolerances; 0 where it converged */
} Iteration;

#if FACTORS > 0
#include "factored_tangent.c"
#else
#include "dense_tangent.c"
#endif

static inline double magnitude_of(const double *unknowns, int i) { return larger(unknown_nominals[i], fabs(unknowns[i])); }

/* The largest part of the increment by its tolerance; not finite where one is not. Writes what that counts. */
static double size_of(const double *unknowns, const double *increment, double *counted) {
    double size = 0.0;
    *counted = 0.0;
    for (int i = 0; i < UNKNOWNS; i++) {
        const double share = fabs(increment[i]) / (unknown_tolerances[i] * magnitude_of(unknowns, i));
        if (!(share <= size)) size = share;
        *counted = larger(i < UNKNOWNS - STATES ? share : LIGHT * share, *counted);
    }
    return size;
}

/* Whether increments no longer shrink, and by how little; the iteration's rate says how they did until now. */
static int is_round_off(const Iteration *iteration, double rate) {
    const int fast = iteration->count > 1 && iteration->rate < FAST;
    const double share = iteration->tangents > 0 || fast ? ROUNDED : FLOOR;
    if (!(rate > (iteration->tangents > 0 ? STAGNATING : SLOW))) return 0;
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

/* Make the tangent where the iteration is. */
static int renew(Instance *instance, Iteration *iteration) {
    if (!make_tangent(instance, iteration->made)) {
        return fail(instance, "the equations of the step are singular in iteration %d", iteration->count + 1);
    }
    iteration->inverse = iteration->made;
    iteration->rate = 0.0;
    iteration->tangents++;
    iteration->own = 1;
    return 1;
}

/* How far the solution is still off behind an increment, by the tolerances. */
static double left_behind(const Iteration *iteration, double counted) {
    return iteration->rate < 1.0 ? iteration->rate / (1.0 - iteration->rate) * counted : HUGE_VAL;
}

/* Whether to go on with the present tangent takes longer than with a new one. */
static int is_dear(const Iteration *iteration, double rate, double size, double counted) {
    int evaluations = 0;
    if (iteration->count == 1 && size <= 1.0 && rate < 1.0) return 0;
    if (iteration->rate >= SLOW) return 1;
    for (double left = left_behind(iteration, counted); left > REMAINING; left *= iteration->rate) evaluations++;
    return evaluations > RENEWAL_COST + FRESH;
}

/* Write what to say of an iteration whose increments shrink by a ratio, the last one as a share of magnitudes. */
static void say_what_happens(char *text, size_t room, const Iteration *iteration, double rate, double size) {
    const double left = largest_magnitude(iteration->residual, ALL_UNKNOWNS) / iteration->first;
    text[0] = '\0';
    if (!(rate > STAGNATING)) return;
    if (size <= NEAR) {
        snprintf(text, room, "; increments hardly shrink, its tolerance may be too small");
        return;
    }
    snprintf(
        text, room, "; the iteration %s, and the residual is %.2g times what it was at first",
        rate >= 1.0 ? "diverges: increments grow" : "stalls: increments hardly shrink", left
    );
}

/* Whether one more tangent may help; else there is a reason. */
static int can_renew(Instance *instance, const Iteration *iteration, double rate) {
    double moves = 0.0, allowed = 0.0;
    char how[160];
    if (iteration->tangents == 0 && rate >= 1.0) return fail(instance, "the tangent of an earlier step leads nowhere");
    if (iteration->tangents < NEWTON_ITERATIONS || MOST_INCREMENTS > 0) return 1;
    const int worst = most_moving(iteration->unknowns, iteration->increment, &moves, &allowed);
    say_what_happens(how, sizeof how, iteration, rate, moves / magnitude_of(iteration->unknowns, worst));
    return fail(
        instance, "after %d iterations %s still moves by %.3g, tolerance %.3g%s", iteration->tangents,
        unknown_name(instance, worst), moves, allowed, how
    );
}

/* Iterate to the end, from the guess of a problem on; returns 0 with a reason. */
static int iterate_step(Instance *instance, Problem *problem, Iteration *iteration) {
    double *const unknowns = iteration->unknowns, *const increment = iteration->increment;
    double before = HUGE_VAL;
    memcpy(unknowns, problem->guess, sizeof(double) * ALL_UNKNOWNS);
    if (!evaluate_here(instance, problem, iteration)) return 0;
    iteration->first = largest_magnitude(iteration->residual, ALL_UNKNOWNS);
    if (iteration->own && !renew(instance, iteration)) return 0;
    for (;;) {
        solve_tangent(instance, iteration->inverse, iteration->residual, increment);
        for (int i = 0; i < ALL_UNKNOWNS; i++) increment[i] = -increment[i];
        double counted;
        const double size = size_of(unknowns, increment, &counted), rate = size / before;
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
            if (MOST_INCREMENTS > 0 || is_dear(iteration, rate, size, counted)) {
                if (!can_renew(instance, iteration, rate) || !renew(instance, iteration)) return 0;
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

/* Begin with the tangent that the state keeps, where it is one of such a step. */
static void take_tangent(Instance *instance, double step, Iteration *iteration) {
    const State *state = &instance->state;
    const double *use = state->tangent_use, before = HISTORY > 0 ? state->history[0] : 0.0;
    iteration->made = scratch_of_tangent(&instance->parts);
    iteration->count = iteration->tangents = iteration->evaluations = 0;
    iteration->rate = use[4];
    iteration->unconverged = 0.0;
    iteration->own = MOST_INCREMENTS > 0 || use[0] == 0.0 || !(fabs(step - use[0]) <= SAME_STEP * use[0])
        || !(fabs(before - use[1]) <= SAME_STEP * use[1]);
    if (iteration->own) return;
    iteration->inverse = state->tangent;
    hold_tangent(instance);
}

/* Keep the tangent that was used last; none where a new one is due. */
static void keep_tangent(Instance *instance, double step, const Iteration *iteration) {
    State *state = &instance->state;
    double *const use = state->tangent_use;
    const double spent = iteration->spent;
    if (iteration->tangents > 0) {
        if (!instance->has_replaced) COPY(instance->replaced, state->tangent, TANGENT);
        instance->has_replaced = 1;
        COPY(state->tangent, iteration->made, TANGENT);
        use[0] = step;
        use[1] = HISTORY > 0 ? state->history[0] : 0.0;
        use[2] = 1.0;
        use[3] = spent;
        use[4] = iteration->rate;
    } else if (spent * use[2] > use[3]) {
        forget_tangent(state);
    } else {
        use[2] += 1.0;
        use[3] += spent;
        use[4] = iteration->rate;
    }
}

/* Solve the equations of a step; returns 0 with a reason. Where a tangent of an earlier step leads nowhere, the iteration
 * begins again with one of its own. */
static int newton(Instance *instance, Problem *problem, double step, Iteration *iteration) {
    int wasted = 0;
    begin(instance, problem, step);
    take_tangent(instance, step, iteration);
    if (!iterate_step(instance, problem, iteration)) {
        if (iteration->own || iteration->tangents > 0) return 0;
        wasted = iteration->evaluations;
        begin(instance, problem, step);
        iteration->count = iteration->evaluations = 0;
        iteration->own = 1;
        if (!iterate_step(instance, problem, iteration)) return 0;
    }
    iteration->spent = wasted + iteration->evaluations + RENEWAL_COST * iteration->tangents;
    return 1;
}
