/* How a run goes on: over intervals in which inputs may jump and discrete states are updated. */

/* A step that is too short to be solved for, by the rates at its beginning: those that a rule finds are
 * differences of positions by the step and its square, of which round-off would be all that is left. */
static void follow_rates(State *state, double step) {
    for (int j = 0; j < COORDINATES; j++) {
        state->coordinates[j] += step * (state->velocities[j] + 0.5 * step * state->accelerations[j]);
        state->velocities[j] += step * state->accelerations[j];
        state->momenta[j] += step * state->momentum_rates[j];
    }
    for (int i = 0; i < STATES; i++) state->states[i] += step * state->rates[i];
    for (int i = 0; i < INTEGRALS; i++) state->integrals[i] += step * state->integral_rates[i];
    state->steps += 1.0;
}

/* Say so where the steps from a time to the state's have made rk4 inaccurate. */
static void warn_inaccurate(Instance *instance, double error_before, double begin) {
    const State *state = &instance->state;
    if (!(error_before <= INACCURATE && state->embedded_distance > INACCURATE)) return;
    report(
        instance, DONE_WITH_WARNING,
        "rk4 with steps of %.3g s is inaccurate: at t = %.6g s its error is estimated at %.2g of the magnitudes; take "
        "smaller steps, or the solver rk45, which chooses them, or trapezoidal",
        smaller(state->step_size, state->time - begin), state->time, state->embedded_distance
    );
}

/* How far a step was left from converged at worst until now. */
static double worst_left(const State *state) { return state->unconverged[MOST(UNCONVERGED, 1) - 1]; }

/* Say so where a limited number of iterations has left a step far from converged, if none was before. */
static void warn_unresolved(Instance *instance, double worst_before) {
    const double worst = worst_left(&instance->state);
    if (UNCONVERGED == 0 || !(worst_before <= UNRESOLVED && worst > UNRESOLVED)) return;
    report(
        instance, DONE_WITH_WARNING,
        "%d iterations do not solve the steps: at t = %.6g s one is left %.2g tolerances from converged, more than %.2g of "
        "the magnitudes; allow more of them, or take smaller steps", MOST_INCREMENTS, instance->state.time, worst, LEFT
    );
}

#include "error_record.c"

/* Advance over an interval inside which no input jumps and nothing is updated, nor up to the horizon. */
static int advance_to(Instance *instance, double stop, double horizon) {
    State *state = &instance->state;
    const double begin = state->time, length = stop - begin, error_before = state->embedded_distance;
    const double worst_before = worst_left(state);
    if (SOLVER == IMPLICIT && length < SHORT * state->step_size) {
        follow_rates(state, length);
    } else if (!step_functions.advance(instance, begin, stop, horizon)) {
        name_change_point(instance);
        return 0;
    }
    state->time = stop;
    instance->known = NOTHING;
    warn_inaccurate(instance, error_before, begin);
    warn_unresolved(instance, worst_before);
    follow_rank(instance);
    if (SOLVER == IMPLICIT && length < BRIEF * state->step_size) {
        step_functions.forget_steps(state);
        make_consistent(instance);
    } else {
        step_functions.inputs_at(instance, stop, state->effective);
    }
    follow_error(instance);
    return 1;
}

/* Let what was set by hand, with what has a rate, count from now on. */
static inline void carry_inputs(State *state) {
    double values[ROOM(INPUTS)];
    step_functions.run_on(state, state->time - state->slope_time, values);
    COPY(state->inputs, values, INPUTS);
    for (int i = 0; i < INPUTS; i++) state->slopes[i] = 0.0;
    state->slope_time = state->time;
}

/* The next jump or bend of an input that has not passed at a time, or update that was not made until another one. */
static double next_event_after(const Instance *instance, double passed, double sampled) {
    return smaller(step_functions.next_event(instance, passed, DBL_MAX, DBL_MAX), next_instant(instance, sampled));
}

/* Where a run has to halt next: at a jump or bend of an input, at an update, or at its end. */
static double next_halt(const Instance *instance, double same, double end) {
    const State *state = &instance->state;
    const double event = step_functions.next_event(instance, state->passed, end - same, end);
    const double instant = next_instant(instance, state->sampled);
    return instant < smaller(event, end - same) ? instant : event;
}

/* How far steps may go past the end of a communication step, which has a length: to the next jump, where nothing was set since the
 * step before. Who sets something in every step would have them made for nothing. */
static double horizon_of(const Instance *instance, double same, double end, double length) {
    if (AHEAD == 0 || *instance->state.ahead == 0.0) return end;
    const double halt = next_halt(instance, same, end + MOST_AHEAD * length);
    return halt > end + same ? halt : end;
}

/* Make the updates that are due, and let rates jump where inputs do; tells where to halt next. */
static int leave(Instance *instance, double same, double end, double *halt) {
    State *state = &instance->state;
    state->passed = state->time + same;
    if (!sample(instance, state->passed)) return 0;
    *halt = next_halt(instance, same, end);
    if (!follows_motion(instance)) return 0;
    refresh(instance);
    return 1;
}
