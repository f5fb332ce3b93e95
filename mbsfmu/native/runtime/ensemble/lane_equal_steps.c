/* Equal steps of a group of machines: as equal_steps.c has them of one. */

/* Make a step in some lanes; returns those where it is made, the others being as they were. */
static Mask step_lanes(Group *group, Lanes step, Iteration *iteration, Mask active) {
    const LaneParts *parts = &group->parts;
    Lanes integrals[ROOM(INTEGRALS)], history[ROOM(HISTORY)];
    Problem problem = {.taking_part = NOWHERE};
    Mask made = newton(group, &problem, step, iteration, active);
    if (!iteration->evaluated) {
        made = evaluate(group, &problem, iteration->unknowns, iteration->residual, made);
        iteration->spent += 1.0;
    }
    store_iteration_matrix(group, step, iteration);
    lanes_integral_rates(parts, parts->integral_rates);
    lanes_carried(parts, integrals, history);
    const Mask steep = made & steep_lanes(group);
    carry_error_in_lanes(group, step, made);
    made &= ~choose_coordinates(group, steep);
    take_arguments(group, integrals, parts->integral_rates, made);
    change_reference_lanes(group, made);
    return made;
}

/* Plan the way to an output, or to a halt before it. Stretches that are too brief for the rule are made at once. */
static void plan_stretch(Group *group, int lane) {
    Instance *instance = &group->instances[lane];
    State *state = &instance->state;
    Stretch *stretch = &group->stretches[lane];
    const double same = stretch->same, output = stretch->output;
    stretch->made = stretch->count = 0.0;
    while (group->running >> lane & 1u && state->time < output) {
        if (!stretch->left) leave_lane(group, lane);
        if (!(group->running >> lane & 1u)) return;
        const int halts_before = stretch->halt < output - same;
        stretch->begin = state->time;
        stretch->end = halts_before ? stretch->halt : output;
        stretch->at_halt = stretch->halt <= output + same;
        const double length = stretch->end - stretch->begin;
        if (!(length < BRIEF * state->step_size)) {
            stretch->count = count_steps(stretch->begin, stretch->end, state->step_size);
            stretch->step = length / stretch->count;
            return;
        }
        store_lane(group, lane);
        step_functions.forget_steps(state);
        if (!advance_to(instance, stretch->end, stretch->end)) {
            end_lane(group, lane);
            return;
        }
        load_lane(group, lane);
        arrive_in_lane(group, lane);
    }
}

/* Make a step that failed in its lane as two of half its size, by the instance, which halves these where that is needed:
 * what `make_step` does where its first attempt has failed. */
static void step_alone(Group *group, int lane, double time, double step) {
    Instance *instance = &group->instances[lane];
    const double before = instance->state.steps;
    store_lane(group, lane);
    load(instance);
    step_functions.forget_steps(&instance->state);
    const double middle = time + 0.5 * step, end = time + step;
    instance->state.failures += 1.0;
    instance->state.retries += 1.0;
    if (step_functions.advance(instance, time, middle, middle) && step_functions.advance(instance, middle, end, end)) {
        load_lane(group, lane);
    } else {
        end_lane(group, lane);
    }
    group->alone[lane] += instance->state.steps - before;
}

static void count_step(State *state, double increments, int matrices) {
    state->steps += 1.0;
    state->newton_total += increments;
    state->newton_max = larger(state->newton_max, increments);
    state->iteration_matrices += matrices;
}

/* Let all lanes come to their outputs, unless the run is to end before. */
static void run_lanes(Group *group, const volatile int *stop) {
    for (int lane = 0; lane < LANES; lane++) plan_stretch(group, lane);
    while (!*stop) {
        double times[LANES];
        Lanes step = group->matrix_step;
        unsigned active = 0;
        for (int lane = 0; lane < LANES; lane++) {
            Stretch *stretch = &group->stretches[lane];
            if (!(group->running >> lane & 1u) || stretch->made >= stretch->count) continue;
            active |= 1u << lane;
            times[lane] = stretch->begin + stretch->made * stretch->step;
            step[lane] = stretch->step;
            if (stretch->varying) {
                Instance *instance = &group->instances[lane];
                step_functions.inputs_at(instance, times[lane] + stretch->step, instance->parts.inputs);
                set_lane(group->parts.inputs, lane, instance->parts.inputs, INPUTS);
            }
        }
        if (!active) return;
        Iteration iteration;
        const unsigned made = bits_of(step_lanes(group, step, &iteration, mask_of(active)));
        for (int lane = 0; lane < LANES; lane++) {
            Stretch *stretch = &group->stretches[lane];
            if (!(active >> lane & 1u)) continue;
            if (made >> lane & 1u) {
                count_step(&group->instances[lane].state, iteration.increments[lane], iteration.iteration_matrices);
            } else {
                step_alone(group, lane, times[lane], stretch->step);
                if (!(group->running >> lane & 1u)) continue;
            }
            stretch->made += 1.0;
            if (stretch->made < stretch->count) continue;
            arrive_in_lane(group, lane);
            plan_stretch(group, lane);
        }
    }
}

/* Let machines go on to all rows, each to an output before any goes on to the next. */
static void make_rows(Group *group, const Machines *machines) {
    for (int row = machines->first_row; group->running && row < machines->count; row++) {
        for (int lane = 0; lane < machines->machines; lane++) group->stretches[lane].output = time_of(machines, lane, row);
        run_lanes(group, machines->stop);
        if (*machines->stop) return;
        record_lanes(group, machines, group->running);
    }
}
