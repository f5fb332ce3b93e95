/* Implicit steps by the rule that the traced functions were made with. */

#include "error_transport.c"

/* One step with the inputs that the arguments hold; the state stays as it is where Newton fails. */
static int try_step(Instance *instance, double step) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    Problem problem;
    Iteration iteration;
    double integrals[ROOM(INTEGRALS)], history[ROOM(HISTORY)];
#if ERROR > 0
    StepStart step_start;
    remember_begin(state, &step_start);
#endif
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->active, state->active, CONSTRAINTS);
    COPY(parts->loop_iterates, state->loop_iterates, LOOP_ITERATES);
    COPY(parts->integrals, state->integrals, INTEGRALS);
    if (!newton(instance, &problem, step, &iteration)) return 0;
    if (!iteration.evaluated && !land(instance, &problem, iteration.unknowns)) return 0;
    if (!finish(instance, &problem) || !follow_loops(instance)) return 0;
    state->steps += 1.0;
    state->newton_total += iteration.count;
    state->newton_max = larger(state->newton_max, iteration.count);
    state->iteration_matrices += iteration.iteration_matrices;
#if UNCONVERGED > 0
    state->unconverged[0] = iteration.unconverged;
    state->unconverged[1] = larger(iteration.unconverged, state->unconverged[1]);
#endif
    if (MOST_INCREMENTS == 0) store_iteration_matrix(instance, step, &iteration);
    if (memcmp(problem.dependent, state->dependent, sizeof(int) * COORDINATES) != 0) {
        state->repartitions += 1.0;
        memcpy(state->dependent, problem.dependent, sizeof(int) * COORDINATES);
        forget_iteration_matrix(state);
    }
    integral_rates(parts, parts->integral_rates);
    carried(parts, integrals, history);
    keep(instance);
    COPY(state->integrals, integrals, INTEGRALS);
    COPY(state->integral_rates, parts->integral_rates, INTEGRALS);
    COPY(state->history, history, HISTORY);
#if ERROR > 0
    carry_error(instance, step, &step_start);
#endif
    describe_anew(instance);
    return 1;
}

/* One step with the inputs at its end. */
static int attempt(Instance *instance, double time, double step) {
    inputs_at(instance, time + step, instance->parts.inputs);
    if (try_step(instance, step)) return 1;
    instance->state.failures += 1.0;
    return 0;
}

static int advance(Instance *instance, double begin_time, double end, double horizon) {
    (void)horizon;
    return advance_equally(instance, begin_time, end, attempt, "");
}
