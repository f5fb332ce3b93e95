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

/* One step with the inputs at its end. */
static int attempt(Instance *instance, double time, double step) {
    inputs_at(instance, time + step, instance->parts.inputs);
    if (try_step(instance, step)) return 1;
    instance->state.failures += 1.0;
    return 0;
}

static int advance(Instance *instance, double begin_time, double end) {
    return advance_equally(instance, begin_time, end, attempt, "");
}
