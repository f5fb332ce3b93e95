/* Steps of the implicit trapezoidal rule. */

/* One trapezoidal step with the inputs that the arguments hold; the state stays as it is where Newton fails. */
static int try_step(Instance *instance, double step) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    Problem problem;
    double unknowns[ROOM(UNKNOWNS)], residual[ROOM(UNKNOWNS)], rates[ROOM(INTEGRALS)];
    int evaluated;
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->active, state->active, CONSTRAINTS);
    COPY(parts->integrals, state->integrals, INTEGRALS);
    begin(instance, &problem, step);
    const int iterations = newton(instance, &problem, unknowns, &evaluated);
    if (!iterations) return 0;
    if (!evaluated && !evaluate(instance, &problem, unknowns, residual)) return 0;
    if (!finish(instance, &problem)) return 0;
    state->steps += 1.0;
    state->newton_total += iterations;
    if (iterations > state->newton_max) state->newton_max = iterations;
    if (memcmp(problem.dependent, state->dependent, sizeof(int) * COORDINATES) != 0) {
        state->repartitions += 1.0;
        memcpy(state->dependent, problem.dependent, sizeof(int) * COORDINATES);
    }
    keep(instance);
    integral_rates(parts, rates);
    for (int i = 0; i < INTEGRALS; i++) {
        state->integrals[i] = state->integrals[i] + 0.5 * step * (state->integral_rates[i] + rates[i]);
        state->integral_rates[i] = rates[i];
    }
    describe_anew(instance);
    return 1;
}

/* One step; where it fails, two of half its size, up to eight times. */
static int make_step(Instance *instance, double time, double step, int halvings) {
    State *state = &instance->state;
    inputs_at(instance, time + step, instance->parts.inputs);
    if (try_step(instance, step)) return 1;
    state->failures += 1.0;
    if (halvings == HALVINGS) {
        char reason[sizeof instance->reason];
        memcpy(reason, instance->reason, sizeof reason);
        return fail(instance, "the step at t = %.9g s fails even with %.3g s: %.300s", time, step, reason);
    }
    state->retries += 1.0;
    return make_step(instance, time, step / 2, halvings + 1)
        && make_step(instance, time + step / 2, step / 2, halvings + 1);
}

/* Advance over an interval without jumps of inputs; longer ones than the internal step are divided evenly. */
static int advance(Instance *instance, double begin_time, double end) {
    const double count = count_steps(begin_time, end, instance->state.step_size);
    const double step = (end - begin_time) / count;
    for (double index = 0.0; index < count; index += 1.0) {
        const double time = begin_time + index * step;
        if (!make_step(instance, time, step, 0) || !loops_closed(instance, time + step)) return 0;
    }
    return 1;
}
