/* Steps of linearly implicit methods of several machines at once, each with a size, an error and an end of its own: what
 * they ask of a group, as rosenbrock_stages.c, adaptive_steps.c and double_step.c have it of one machine. Every round tries a step
 * in all lanes; where it is rejected, its beginning is found once more in the next one. lane_adaptive.h, lane_adaptive.c and
 * lane_rosenbrock.c are made of mbsfmu/stepping/adaptive.py and rosenbrock.py. */

static inline Mask not_finite(Lanes value) { return ~(value - value == (Lanes){0}); }

static inline Lanes sum_of(const Lanes *values, int count) {
    Lanes sum = {0};
    for (int i = 0; i < count; i++) sum += values[i] - values[i];
    return sum;
}

static void add_lane_columns(int columns, int rows, const Lanes *matrix, int apart, const Lanes *weights, Lanes *sums) {
    for (int k = 0; k < columns; k++) {
        const Lanes *const column = matrix + apart * k, weight = weights[k];
        for (int i = 0; i < rows; i++) sums[i] += weight * column[i];
    }
}

/* Let lanes whose inputs change have those of a time. */
static void bring_inputs(Group *group, Lanes times, Mask live) {
    const unsigned due = bits_of(live);
    for (int lane = 0; lane < LANES; lane++) {
        Instance *instance = &group->instances[lane];
        if (!(due >> lane & 1u) || !group->stretches[lane].varying) continue;
        step_functions.inputs_at(instance, times[lane], instance->parts.inputs);
        set_lane(group->parts.inputs, lane, instance->parts.inputs, INPUTS);
    }
}

/* y' at times inside intervals without jumps; brings the arguments there, of the motion the independent part alone where no
 * rate depends on all of it. Returns lanes where it cannot be found. */
static Mask rates_in_lanes(Group *group, Lanes times, const Lanes *y, Mask live, Lanes *rates) {
    const LaneParts *parts = &group->parts;
    Lanes coordinates[ROOM(COORDINATES)], mass[ROOM(FREEDOM * FREEDOM)], load[ROOM(FREEDOM)];
    Mask pivots[ROOM(FREEDOM)];
    bring_inputs(group, times, live);
    COPY_LANES(coordinates, group->state.coordinates, COORDINATES);
    for (int k = 0; k < FREEDOM; k++) {
        const Lanes moved = y[k] - pick(group, group->state.coordinates, group->independent[k]);
        for (int i = 0; i < RANK; i++) { /* where the iteration matrix at the state leads */
            const Lanes slope = pick(group, group->leading + COORDINATES * k, group->dependent[i]);
            put(group, coordinates, group->dependent[i], pick(group, coordinates, group->dependent[i]) + slope * moved);
        }
        put(group, coordinates, group->independent[k], y[k]);
    }
    Mask failed = place_lanes(group, coordinates, live);
    COPY_LANES(parts->independent_velocities, y + FREEDOM, FREEDOM);
    COPY_LANES(parts->states, y + 2 * FREEDOM, STATES);
    COPY_LANES(parts->integrals, y + 2 * FREEDOM + STATES, INTEGRALS);
#if RATES_AT_ONCE
    lanes_reduced_dynamics(parts, mass, load, parts->rates, rates + 2 * FREEDOM + STATES);
#else
    lanes_reduced_dynamics(parts, mass, load, parts->rates);
#endif
    failed |= invert_lanes(FREEDOM, mass, pivots);
    multiply_lanes(FREEDOM, FREEDOM, mass, load, rates + FREEDOM);
    COPY_LANES(parts->independent_accelerations, rates + FREEDOM, FREEDOM);
#if !RATES_AT_ONCE
    lanes_reduced_motion(parts);
#if RATES_BY_ACCELERATIONS
    lanes_state_rates(parts, parts->rates);
#endif
    lanes_integral_rates(parts, rates + 2 * FREEDOM + STATES);
#endif
    COPY_LANES(rates, y + FREEDOM, FREEDOM);
    COPY_LANES(rates + 2 * FREEDOM, parts->rates, STATES);
    return failed | not_finite(sum_of(rates, SIZE));
}

/* Where the loops have been closed in another way than in the state, a step before. */
static Mask leaping_lanes(const Group *group, Lanes step) {
#if RANK > 0
    const LaneState *before = &group->state;
    const LaneParts *after = &group->parts;
    Lanes speed = {0}, push = {0}, off = {0};
    for (int i = 0; i < RANK; i++) {
        const int *const at = group->dependent[i];
        const Lanes v = pick(group, before->velocities, at), w = pick(group, after->velocities, at);
        const Lanes a = pick(group, before->accelerations, at), b = pick(group, after->accelerations, at);
        const Lanes moved = 0.5 * step * (v + w) + step * step / 12.0 * (a - b);
        speed = lanes_larger(speed, lanes_larger(lanes_fabs(v), lanes_fabs(w)));
        push = lanes_larger(push, lanes_larger(lanes_fabs(a), lanes_fabs(b)));
        off = lanes_larger(off, lanes_fabs(pick(group, after->coordinates, at) - pick(group, before->coordinates, at) - moved));
    }
    return off > LEAP * (step * speed + 0.5 * step * step * push) + ROUND_OFF;
#else
    (void)group;
    (void)step;
    return (Mask){0};
#endif
}

/* Bring the arguments to y, some time after the state; returns lanes where that can be. */
static Mask reach_in_lanes(Group *group, Lanes times, Lanes step, const Lanes *y, Mask live, Lanes *rates) {
    const Mask failed = rates_in_lanes(group, times, y, live, rates);
#if RATES_AT_ONCE
    lanes_reduced_motion(&group->parts);
#endif
    return live & ~failed & ~leaping_lanes(group, step);
}

/* Take y, where the arguments are, as the state of some lanes. */
static void keep_lanes(Group *group, const Lanes *y, const Lanes *rates, Mask made) {
    take_arguments(group, y + 2 * FREEDOM + STATES, rates + 2 * FREEDOM + STATES, made);
}

/* -- where steps begin ------------------------------------------------------------------------------------------- */

/* Add what changes of the independent accelerations add to those of the states' and the integrals' rates. */
static void add_through_lane_accelerations(
    const LaneParts *parts, int columns, const Lanes *pushed, int apart, Lanes *rates, int rates_apart
) {
#if RATES_BY_ACCELERATIONS || DRIVEN > 0
    Lanes matrix[ROOM((STATES + INTEGRALS) * FREEDOM)];
    lanes_reduced_by_accelerations(parts, matrix);
    for (int j = 0; j < columns; j++) {
        add_lane_columns(
            FREEDOM, STATES + INTEGRALS, matrix, STATES + INTEGRALS, pushed + apart * j, rates + rates_apart * j
        );
    }
#else
    (void)parts, (void)columns, (void)pushed, (void)apart, (void)rates, (void)rates_apart;
#endif
}

/* The change of y' with the inputs in time, zero where these stay. */
static void find_lane_drift(Group *group, Attempt *tried, unsigned active, const Lanes *inverse) {
    const LaneParts *parts = &group->parts;
    Lanes right[ROOM(SLOPES)];
    int drifts = 0;
    for (int i = 0; i < SIZE; i++) tried->drift[i] = (Lanes){0};
    for (int i = 0; i < INPUTS; i++) parts->input_rates[i] = (Lanes){0};
    for (int lane = 0; lane < LANES; lane++) {
        Instance *instance = &group->instances[lane];
        double *const slopes = instance->parts.input_rates;
        if (!(active >> lane & 1u) || !group->stretches[lane].varying) continue;
        step_functions.input_slopes_at(instance, tried->time[lane], slopes);
        for (int i = 0; i < INPUTS; i++) drifts |= slopes[i] != 0.0;
        set_lane(parts->input_rates, lane, slopes, INPUTS);
    }
    if (!drifts) return;
    lanes_reduced_drift(parts, right);
    multiply_lanes(FREEDOM, FREEDOM, inverse, right, tried->drift + FREEDOM);
    COPY_LANES(tried->drift + 2 * FREEDOM, right + FREEDOM, SLOPES - FREEDOM);
    add_through_lane_accelerations(parts, 1, tried->drift + FREEDOM, 0, tried->drift + 2 * FREEDOM, 0);
}

/* Where the states are: y, its rates and their derivatives; returns lanes where these cannot be found. */
static Mask linearize_lanes(Group *group, Attempt *tried, unsigned active) {
    const LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    Lanes mass[ROOM(FREEDOM * FREEDOM)];
    Mask pivots[ROOM(FREEDOM)];
    for (int k = 0; k < FREEDOM; k++) {
        tried->start[k] = pick(group, state->coordinates, group->independent[k]);
        tried->start[FREEDOM + k] = tried->rates[k] = pick(group, state->velocities, group->independent[k]);
        tried->rates[FREEDOM + k] = pick(group, state->accelerations, group->independent[k]);
    }
    COPY_LANES(tried->start + 2 * FREEDOM, state->states, STATES);
    COPY_LANES(tried->rates + 2 * FREEDOM, state->rates, STATES);
    COPY_LANES(tried->start + 2 * FREEDOM + STATES, state->integrals, INTEGRALS);
    COPY_LANES(tried->rates + 2 * FREEDOM + STATES, state->integral_rates, INTEGRALS);
    COPY_LANES(parts->references, state->references, REFERENCES);
    COPY_LANES(parts->active, state->active, CONSTRAINTS);
    bring_inputs(group, tried->time, mask_of(active));
    Mask failed = place_lanes(group, state->coordinates, mask_of(active));
    COPY_LANES(group->leading, parts->basis, COORDINATES * FREEDOM);
    COPY_LANES(parts->velocities, state->velocities, COORDINATES);
    COPY_LANES(parts->accelerations, state->accelerations, COORDINATES);
    COPY_LANES(parts->multipliers, state->multipliers, CONSTRAINTS);
    COPY_LANES(parts->states, state->states, STATES);
    lanes_reduced_slope(parts, mass, group->pushed, group->of_rates);
    failed |= invert_lanes(FREEDOM, mass, pivots);
    for (int j = 0; j < CONTROLLED; j++) {
        Lanes *const column = group->slope + SLOPES * j;
        multiply_lanes(FREEDOM, FREEDOM, mass, group->pushed + FREEDOM * j, column);
        COPY_LANES(column + FREEDOM, group->of_rates + (SLOPES - FREEDOM) * j, SLOPES - FREEDOM);
    }
    add_through_lane_accelerations(parts, CONTROLLED, group->slope, SLOPES, group->slope + FREEDOM, SLOPES);
    find_lane_drift(group, tried, active, mass);
    return failed | not_finite(sum_of(group->slope, SLOPES * CONTROLLED));
}

/* -- a step ------------------------------------------------------------------------------------------------------ */

static Mask factorize_step(Group *group, const Attempt *attempt, Mask on) {
    const Lanes share = DIAGONAL * attempt->step;
    Mask pivots[ROOM(SOLVED)];
    for (int j = 0; j < SOLVED; j++) {
        for (int i = 0; i < SOLVED; i++) {
            Lanes sum = -group->slope[i + SLOPES * (CHAINED + j)];
            if (j < CHAINED) sum -= share * group->slope[i + SLOPES * j];
            group->inverse[i + SOLVED * j] = i == j ? sum + 1.0 / share : sum;
        }
    }
    return on & ~invert_lanes(SOLVED, group->inverse, pivots);
}

static Mask solve_stage(Group *group, Attempt *attempt, int stage, Mask on) {
    const Lanes share = DIAGONAL * attempt->step;
    Lanes weights[ROOM(CHAINED)], found[ROOM(SOLVED)], *const right = attempt->increments + SIZE * stage;
    Lanes *const solved = right + CHAINED, *const integrals = right + CONTROLLED;
    for (int j = 0; j < CHAINED; j++) weights[j] = share * right[j];
    add_lane_columns(CHAINED, SOLVED, group->slope, SLOPES, weights, solved);
    multiply_lanes(SOLVED, SOLVED, group->inverse, solved, found);
    COPY_LANES(solved, found, SOLVED);
    for (int j = 0; j < CHAINED; j++) right[j] = share * (solved[j] + right[j]);
    add_lane_columns(CONTROLLED, INTEGRALS, group->slope + SOLVED, SLOPES, right, integrals);
    for (int i = 0; i < INTEGRALS; i++) integrals[i] *= share;
    return on;
}

static Mask find_rates(Group *group, Lanes times, const Lanes *values, Lanes *rates, Mask on) {
    const unsigned counted = bits_of(on);
    for (int lane = 0; lane < LANES; lane++) group->instances[lane].state.evaluations += counted >> lane & 1u;
    return on & ~rates_in_lanes(group, times, values, on, rates);
}

static void count_refusal(Group *group, Mask on) {
    const unsigned counted = bits_of(on);
    for (int lane = 0; lane < LANES; lane++) group->instances[lane].state.retries += counted >> lane & 1u;
}

#include "lane_rosenbrock.c"

/* Let an instance look at its lane at an output inside a step. */
static void look_at_lane(Group *group, int lane, double time) {
    Instance *instance = &group->instances[lane];
    State *state = &instance->state;
    state->time = time;
    step_functions.inputs_at(instance, time, state->effective);
    get_lane(state->coordinates, group->state.coordinates, lane, COORDINATES);
    get_lane(state->velocities, group->state.velocities, lane, COORDINATES);
    get_lane(state->references, group->state.references, lane, REFERENCES);
    follow_rank(instance);
}

/* Record the rows inside steps that are going to be made, a row of each lane at a time; returns lanes where that can be. */
static Mask look_inside_lanes(Group *group, Attempt *tried, Mask good) {
    const Machines *machines = group->machines;
    for (;;) {
        Lanes elapsed = {0}, y[ROOM(SIZE)], rates[ROOM(SIZE)];
        unsigned due = 0;
        for (int lane = 0; lane < machines->machines; lane++) {
            const Stretch *stretch = &group->stretches[lane];
            if (!good[lane] || stretch->row >= stretch->behind) continue;
            const double time = time_of(machines, lane, stretch->row);
            if (!(time < stretch->begin + tried->reached[lane])) continue;
            elapsed[lane] = time - tried->time[lane];
            due |= 1u << lane;
        }
        if (!due) return good;
        const LaneState before = group->state;
        find_between(group, tried, elapsed / tried->step, y, mask_of(due));
        const Mask made = reach_in_lanes(group, tried->time + elapsed, elapsed, y, mask_of(due), rates);
        const unsigned recorded = bits_of(made);
        keep_lanes(group, y, rates, made);
        for (int lane = 0; lane < machines->machines; lane++) {
            if (recorded >> lane & 1u) look_at_lane(group, lane, time_of(machines, lane, group->stretches[lane].row));
        }
        record_lanes(group, machines, recorded);
        group->state = before;
        good &= made | ~mask_of(due);
    }
}

static Mask take_end(Group *group, const Way *way, Attempt *attempt, Mask on) {
    Lanes rates[ROOM(SIZE)];
    Mask good = look_inside_lanes(group, attempt, on);
    (void)way;
    if (!any(good)) return good;
    good = reach_in_lanes(group, attempt->time + attempt->step, attempt->step, attempt->end, good, rates);
    const unsigned lost = bits_of(choose_coordinates(group, good & steep_lanes(group)));
    keep_lanes(group, attempt->end, rates, good);
    change_reference_lanes(group, good);
    for (int lane = 0; lane < LANES; lane++) {
        group->instances[lane].state.steps += good[lane] != 0;
        if (lost >> lane & 1u) end_lane(group, lane);
    }
    return good;
}

#include "lane_adaptive.c"

/* What an instance needs to record what is inside its steps. */
typedef struct {
    Group *group;
    const Machines *machines;
    int lane;
} Taker;

static void take_row(Instance *instance, double time) {
    const Taker *taker = instance->wanted->taker;
    load_lane(taker->group, taker->lane);
    look_at_lane(taker->group, taker->lane, time);
    record_lanes(taker->group, taker->machines, 1u << taker->lane);
}

/* Let an instance make the rest of its lane's way, or find why it cannot. */
static void go_alone(Group *group, const Machines *machines, int lane) {
    Instance *instance = &group->instances[lane];
    Stretch *stretch = &group->stretches[lane];
    Taker taker = {group, machines, lane};
    const double *const times = machines->times + machines->times_apart * lane + stretch->row;
    Wanted wanted = {times, stretch->behind - stretch->row, take_row, &taker, NULL};
    const double before = instance->state.steps;
    store_lane(group, lane);
    instance->wanted = &wanted;
    instance->stop = machines->stop;
    if (step_functions.advance(instance, stretch->begin + group->way.elapsed[lane], stretch->end, stretch->end)) {
        load_lane(group, lane);
    } else {
        name_change_point(instance);
        end_lane(group, lane);
    }
    instance->wanted = NULL;
    instance->stop = NULL;
    group->way.elapsed[lane] = group->way.whole[lane];
    group->alone[lane] += instance->state.steps - before;
}

/* Try a step in some lanes. */
static void try_steps(Group *group, const Machines *machines, unsigned active) {
    Way *const way = &group->way;
    Attempt *const attempt = &group->attempt;
    group->machines = machines;
    way->suggested = *group->state.suggested_step;
    attempt->step = splat(1.0);
    for (int lane = 0; lane < LANES; lane++) {
        attempt->time[lane] = active >> lane & 1u ? way->origin[lane] + way->elapsed[lane] : 0.0;
    }
    Mask on = is_coming(group, way, mask_of(active));
    on &= ~linearize_lanes(group, attempt, bits_of(on));
    const Mask unknown = on & ~is_long(way);
    if (any(unknown)) choose_first_step(group, way, attempt, unknown);
    const Mask made = try_step(group, way, attempt, on);
    *group->state.suggested_step = way->suggested;
    const unsigned alone = active & ~bits_of(on & (made | is_long(way)));
    for (int lane = 0; lane < LANES; lane++) {
        if (alone >> lane & 1u) go_alone(group, machines, lane);
    }
}

/* -- from halt to halt ------------------------------------------------------------------------------------------- */

/* Plan the way to the next halt, with all rows until then. */
static void plan_stretch(Group *group, const Machines *machines, int lane) {
    Instance *instance = &group->instances[lane];
    Stretch *stretch = &group->stretches[lane];
    Way *way = &group->way;
    const double same = stretch->same;
    leave_lane(group, lane);
    int behind = stretch->row;
    while (behind < machines->count && time_of(machines, lane, behind) <= stretch->halt + same) behind++;
    const double output = behind > stretch->row ? time_of(machines, lane, behind - 1) : -HUGE_VAL;
    const int arrives = output >= stretch->halt - same;
    stretch->output = arrives ? output : HUGE_VAL;
    stretch->behind = behind - arrives;
    stretch->begin = instance->state.time;
    stretch->end = arrives ? output : stretch->halt;
    way->origin[lane] = stretch->begin;
    way->whole[lane] = way->target[lane] = stretch->end - stretch->begin;
    way->elapsed[lane] = way->looked[lane] = way->tries[lane] = way->refused[lane] = 0.0;
    way->most[lane] = MOST_FACTOR;
    stretch->at_halt = 1;
}

/* Let machines go on to all rows, none of which waits for another machine. */
static void make_rows(Group *group, const Machines *machines) {
    unsigned there = 0;
    for (int lane = 0; lane < machines->machines; lane++) {
        if (!(group->running >> lane & 1u)) continue;
        if (group->stretches[lane].last > group->instances[lane].state.time) {
            plan_stretch(group, machines, lane);
        } else {
            there |= 1u << lane;
        }
    }
    record_lanes(group, machines, there);
    while (!*machines->stop) {
        unsigned active = 0, arrived = 0, recorded = 0;
        for (int lane = 0; lane < machines->machines; lane++) {
            const Stretch *stretch = &group->stretches[lane];
            if (!(group->running >> lane & 1u) || stretch->row >= machines->count) continue;
            *(group->way.elapsed[lane] < group->way.whole[lane] ? &active : &arrived) |= 1u << lane;
        }
        if (!active && !arrived) return;
        if (!arrived) {
            try_steps(group, machines, active);
            continue;
        }
        for (int lane = 0; lane < machines->machines; lane++) {
            if (!(arrived >> lane & 1u)) continue;
            arrive_in_lane(group, lane);
            if (group->stretches[lane].end == group->stretches[lane].output) recorded |= 1u << lane;
        }
        record_lanes(group, machines, recorded & group->running);
        for (int lane = 0; lane < machines->machines; lane++) {
            if (arrived & group->running & 1u << lane && group->stretches[lane].row < machines->count) {
                plan_stretch(group, machines, lane);
            }
        }
    }
}
