/* What Newton's iteration asks of a machine: newton.h and newton.c are made of mbsfmu/stepping/newton.py. */

#if FACTORS > 0
#include "factored_iteration_matrix.c"
#else
#include "dense_iteration_matrix.c"
#endif

static int make_matrix(Instance *instance, Iteration *iteration) {
    iteration->inverse = iteration->made;
    return make_iteration_matrix(instance, iteration->made);
}

static void solve_matrix(Instance *instance, Iteration *iteration) {
    solve_iteration_matrix(instance, iteration->inverse, iteration->residual, iteration->increment);
}

/* Begin with the iteration matrix that the state keeps, where it is one of such a step. */
static void reuse_iteration_matrix(Instance *instance, double step, Iteration *iteration) {
    State *state = &instance->state;
    const double *use = state->iteration_matrix_use, before = HISTORY > 0 ? state->history[0] : 0.0;
    iteration->made = scratch_of_iteration_matrix(&instance->parts);
    iteration->rate = use[4];
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
