/* Implicit steps of equal size of several machines at once, in independent coordinates and states, as double_step.c,
 * newton_machine.c and steps.c have them of one. lane_newton.h and lane_newton.c are made of mbsfmu/stepping/newton.py. */

#include "lane_newton.h"

/* -- what Newton's iteration asks; iteration matrices are made for all lanes where one lane needs one --------------- */

typedef struct {
    Lanes guess[ROOM(UNKNOWNS)];
    Lanes predicted[ROOM(COORDINATES)], estimate[ROOM(COORDINATES)];
    Mask taking_part;               /* lanes that have a step to make, and whose loops could be closed until now */
    int placed;
} Problem;

/* Set where the steps begin, and predict their ends; in some lanes perhaps for the second time. */
static void begin(Group *group, Problem *problem, Lanes step, Mask on) {
    const LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    COPY_LANES(parts->references, state->references, REFERENCES);
    COPY_LANES(parts->active, state->active, CONSTRAINTS);
    COPY_LANES(parts->integrals, state->integrals, INTEGRALS);
    for (int j = 0; j < COORDINATES; j++) {
        problem->predicted[j] =
            state->coordinates[j] + step * state->velocities[j] + 0.5 * (step * step) * state->accelerations[j];
        problem->estimate[j] = select_lanes(on, problem->predicted[j], problem->estimate[j]);
    }
    for (int k = 0; k < FREEDOM; k++) {
        parts->begin[k] = pick(group, state->coordinates, group->independent[k]);
        parts->begin_rates[k] = pick(group, state->velocities, group->independent[k]);
        parts->begin_accelerations[k] = pick(group, state->accelerations, group->independent[k]);
        problem->guess[k] = pick(group, problem->predicted, group->independent[k]);
    }
    for (int i = 0; i < STATES; i++) {
        parts->begin[FREEDOM + i] = state->states[i];
        parts->begin_rates[FREEDOM + i] = state->rates[i];
        problem->guess[FREEDOM + i] = state->states[i] + step * state->rates[i];
    }
    *parts->step = step;
    problem->taking_part |= on;
}

/* (M'' z''_i - Q'', x' - f) at the unknowns [eq. 38], in all lanes that take part: those that have converged follow. */
static Mask evaluate(Group *group, Problem *problem, const Lanes *unknowns, Lanes *residual, Mask on) {
    const LaneParts *parts = &group->parts;
    Lanes increments[ROOM(FREEDOM)], *const estimate = problem->estimate;
    for (int k = 0; k < FREEDOM; k++) {
        increments[k] = unknowns[k] - pick(group, estimate, group->independent[k]);
        put(group, estimate, group->independent[k], unknowns[k]);
    }
    for (int i = 0; problem->placed && i < RANK; i++) { /* follow the iteration matrix: the loops are then closed at once */
        Lanes sum = pick(group, estimate, group->dependent[i]);
        for (int c = 0; c < FREEDOM; c++) {
            sum += pick(group, parts->basis + COORDINATES * c, group->dependent[i]) * increments[c];
        }
        put(group, estimate, group->dependent[i], sum);
    }
    problem->taking_part &= ~place_lanes(group, estimate, problem->taking_part);
    COPY_LANES(estimate, parts->coordinates, COORDINATES);
    problem->placed = 1;
    COPY_LANES(parts->unknowns, unknowns, UNKNOWNS);
    lanes_reduced_residual(parts, residual);
    return on & problem->taking_part;
}

static Mask make_matrix(Group *group, Iteration *iteration, Mask on) {
    Mask pivots[ROOM(UNKNOWNS)];
    lanes_reduced_iteration_matrix(&group->parts, iteration->made);
    return on & ~invert_lanes(UNKNOWNS, iteration->made, pivots);
}

static void solve_matrix(Group *group, Iteration *iteration, Mask on) {
    (void)group;
    (void)on;
    multiply_lanes(UNKNOWNS, UNKNOWNS, iteration->inverse, iteration->residual, iteration->increment);
}

/* Begin with the iteration matrices of earlier steps, where they serve for these. */
static void reuse_iteration_matrix(Group *group, Lanes step, Iteration *iteration, Mask on) {
    const Lanes apart = lanes_fabs(step - group->matrix_step);
    iteration->made = iteration->inverse = group->inverse;
    iteration->rate = group->rate;
    iteration->own = !group->has_matrix || any(on & ~(apart <= SAME_STEP * group->matrix_step));
}

/* Keep the iteration matrices; none where new ones are due. */
static void store_iteration_matrix(Group *group, Lanes step, const Iteration *iteration) {
    group->rate = iteration->rate;
    if (iteration->iteration_matrices > 0) {
        group->has_matrix = 1;
        group->matrix_step = step;
        group->uses = 1.0;
        group->spent = iteration->spent;
    } else if (iteration->spent * group->uses > group->spent) {
        group->has_matrix = 0;
    } else {
        group->uses += 1.0;
        group->spent += iteration->spent;
    }
}

#include "lane_newton.c"

/* -- equal steps ---------------------------------------------------------------------------------------------------- */

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
