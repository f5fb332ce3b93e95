/* Steps of linearly implicit methods of several machines at once, each with a size, an error and an end of its own: as
 * rosenbrock.c, dense_stages.c, adaptive.c and reduced_form.c have them of one. Every round tries a step in all lanes; where
 * it is rejected, its beginning is found once more in the next one. */

/* A tried. */
typedef struct {
    Lanes time, step;               /* where the steps begin, and their sizes */
    Lanes start[ROOM(SIZE)], rates[ROOM(SIZE)], drift[ROOM(SIZE)], end[ROOM(SIZE)];
    double reached[LANES];          /* where they end, in s since the way began */
} LaneRound;

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
static void find_lane_drift(Group *group, LaneRound *tried, unsigned active, const Lanes *inverse) {
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
static Mask linearize_lanes(Group *group, LaneRound *tried, unsigned active) {
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

/* -- sizes of steps ---------------------------------------------------------------------------------------------- */

/* Root mean squares of a difference by the tolerances. */
static Lanes size_of_lanes(const Lanes *start, const Lanes *end, const Lanes *difference) {
    Lanes sum = {0};
    for (int i = 0; i < WATCHED; i++) {
        const Lanes largest = lanes_larger(lanes_fabs(start[i]), lanes_fabs(end[i]));
        const Lanes share = difference[i] / (ABSOLUTE_TOLERANCE * explicit_scales[i] + RELATIVE_TOLERANCE * largest);
        sum += share * share;
    }
    return select_lanes(not_finite(sum), splat(HUGE_VAL), lanes_sqrt(sum / larger(WATCHED, 1)));
}

/* The fractions of the tolerances that are allowed in steps, by the changes of y in them. */
static Lanes slightness_in_lanes(const Lanes *start, const Lanes *end) {
    Lanes change = splat(LEAST_TOLERANCE / ABSOLUTE_TOLERANCE);
    for (int i = 0; i < WATCHED; i++) {
        change = lanes_larger(lanes_fabs(end[i] - start[i]) / (SLIGHT * explicit_scales[i]), change);
    }
    return lanes_smaller(splat(1.0), change);
}

/* Steps to begin with, where none is known or one that would lead nowhere. */
static void find_first_steps(Group *group, const LaneRound *tried, unsigned active) {
    Lanes trial[ROOM(SIZE)], rates[ROOM(SIZE)], step = splat(1.0), *const suggested = group->state.suggested_step;
    unsigned due = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const int known = (*suggested)[lane] >= SMALLEST_SHARE * group->stretches[lane].whole;
        if (active >> lane & 1u && !known) due |= 1u << lane;
    }
    if (!due) return;
    const Lanes size = size_of_lanes(tried->start, tried->start, tried->start);
    const Lanes speed = size_of_lanes(tried->start, tried->start, tried->rates);
    for (int lane = 0; lane < LANES; lane++) {
        const double whole = group->stretches[lane].whole;
        if (!(due >> lane & 1u)) continue;
        step[lane] = size[lane] < STANDING ? smaller(whole, FIRST_STEP) : whole;
        if (size[lane] >= STANDING && speed[lane] * step[lane] > FIRST_CHANGE * size[lane]) {
            step[lane] = FIRST_CHANGE * size[lane] / speed[lane];
        }
        group->instances[lane].state.evaluations += 1.0;
    }
    for (int i = 0; i < SIZE; i++) trial[i] = tried->start[i] + step * tried->rates[i];
    const unsigned failed = bits_of(rates_in_lanes(group, tried->time + step, trial, mask_of(due), rates));
    for (int i = 0; i < SIZE; i++) rates[i] -= tried->rates[i];
    const Lanes bend = size_of_lanes(tried->start, tried->start, rates) / step;
    for (int lane = 0; lane < LANES; lane++) {
        const double whole = group->stretches[lane].whole, fastest = larger(speed[lane], bend[lane]);
        if (!(due >> lane & 1u)) continue;
        const double accurate = fastest > 0.0 ? pow(FIRST_CHANGE / fastest, 1.0 / ORDER) : whole;
        const int found = !(failed >> lane & 1u);
        (*suggested)[lane] = found ? smaller(whole, smaller(100.0 * step[lane], accurate)) : step[lane];
    }
}

/* Count a try; returns 0 where steps will not come to the end of the way. */
static int is_coming(Stretch *stretch) {
    if (++stretch->tries < CRAWLING_STEPS) return 1;
    const double made = stretch->elapsed - stretch->looked;
    const double least = stretch->refused >= REFUSED_STEPS ? REFUSED_SHARE : CRAWLING_SHARE;
    stretch->tries = stretch->refused = 0;
    stretch->looked = stretch->elapsed;
    return made >= least * stretch->whole;
}

/* -- a step ------------------------------------------------------------------------------------------------------ */

/* Invert the matrices of the steps; returns the singular lanes. */
static Mask prepare_stages(Group *group, Lanes share) {
    Mask pivots[ROOM(SOLVED)];
    for (int j = 0; j < SOLVED; j++) {
        for (int i = 0; i < SOLVED; i++) {
            Lanes sum = -group->slope[i + SLOPES * (CHAINED + j)];
            if (j < CHAINED) sum -= share * group->slope[i + SLOPES * j];
            group->inverse[i + SOLVED * j] = i == j ? sum + 1.0 / share : sum;
        }
    }
    return invert_lanes(SOLVED, group->inverse, pivots);
}

/* Solve for one stage; the right side becomes the increment. */
static void solve_lane_stage(const Group *group, Lanes share, Lanes *right) {
    Lanes weights[ROOM(CHAINED)], found[ROOM(SOLVED)], *const solved = right + CHAINED, *const integrals = right + CONTROLLED;
    for (int j = 0; j < CHAINED; j++) weights[j] = share * right[j];
    add_lane_columns(CHAINED, SOLVED, group->slope, SLOPES, weights, solved);
    multiply_lanes(SOLVED, SOLVED, group->inverse, solved, found);
    COPY_LANES(solved, found, SOLVED);
    for (int j = 0; j < CHAINED; j++) right[j] = share * (solved[j] + right[j]);
    add_lane_columns(CONTROLLED, INTEGRALS, group->slope + SOLVED, SLOPES, right, integrals);
    for (int i = 0; i < INTEGRALS; i++) integrals[i] *= share;
}

/* The increments of all stages, and y at the end; returns lanes where these can be found. */
static Mask increments_in_lanes(Group *group, LaneRound *tried, Mask live) {
    Lanes rates[ROOM(SIZE)], coupled[STAGES];
    const Lanes share = DIAGONAL * tried->step;
    live &= ~prepare_stages(group, share);
    for (int stage = 0; stage < STAGES; stage++) {
        const double *const weights = couplings + stage * (stage - 1) / 2;
        const double *const couples = rate_couplings + stage * (stage - 1) / 2;
        Lanes *const right = group->increments[stage], slope = stage_slopes[stage] * tried->step;
        for (int k = 0; k < stage; k++) coupled[k] = couples[k] / tried->step;
        for (int i = 0; i < SIZE; i++) {
            Lanes y = tried->start[i], sum = slope * tried->drift[i];
            for (int k = 0; k < stage; k++) {
                y += weights[k] * group->increments[k][i];
                sum += coupled[k] * group->increments[k][i];
            }
            tried->end[i] = y;
            right[i] = sum;
        }
        if (stage > 0) {
            const unsigned counted = bits_of(live);
            for (int lane = 0; lane < LANES; lane++) group->instances[lane].state.evaluations += counted >> lane & 1u;
            live &= ~rates_in_lanes(group, tried->time + stage_nodes[stage] * tried->step, tried->end, live, rates);
        }
        for (int i = 0; i < SIZE; i++) right[i] += stage > 0 ? rates[i] : tried->rates[i];
        solve_lane_stage(group, share, right);
    }
    for (int i = 0; i < SIZE; i++) tried->end[i] += group->increments[STAGES - 1][i];
    return live;
}

/* y at shares of the steps. */
static void between_lane_ends(const Group *group, const LaneRound *tried, Lanes share, Lanes *y) {
    for (int i = 0; i < SIZE; i++) {
        Lanes bend = {0};
        for (int row = INTERPOLANTS - 1; row >= 0; row--) {
            Lanes sum = {0};
            for (int k = 0; k < STAGES; k++) sum += interpolation[k + STAGES * row] * group->increments[k][i];
            bend = sum + share * bend;
        }
        y[i] = (1.0 - share) * tried->start[i] + share * (tried->end[i] + (1.0 - share) * bend);
    }
}

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
static Mask look_inside_lanes(Group *group, const Machines *machines, const LaneRound *tried, Mask good) {
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
        between_lane_ends(group, tried, elapsed / tried->step, y);
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
    if (step_functions.advance(instance, stretch->begin + stretch->elapsed, stretch->end, stretch->end)) {
        load_lane(group, lane);
    } else {
        name_change_point(instance);
        end_lane(group, lane);
    }
    instance->wanted = NULL;
    instance->stop = NULL;
    stretch->elapsed = stretch->whole;
    group->alone[lane] += instance->state.steps - before;
}

/* Try a step in some lanes. */
static void try_steps(Group *group, const Machines *machines, unsigned active) {
    LaneRound tried = {.step = splat(1.0)};
    Lanes rates[ROOM(SIZE)], *const suggested = group->state.suggested_step;
    unsigned alone = 0, last = 0;
    for (int lane = 0; lane < LANES; lane++) {
        Stretch *stretch = &group->stretches[lane];
        if (!(active >> lane & 1u)) continue;
        tried.time[lane] = stretch->begin + stretch->elapsed;
        if (!is_coming(stretch)) alone |= 1u << lane;
    }
    alone |= active & bits_of(linearize_lanes(group, &tried, active));
    active &= ~alone;
    find_first_steps(group, &tried, active);
    for (int lane = 0; lane < LANES; lane++) {
        const Stretch *stretch = &group->stretches[lane];
        if (!(active >> lane & 1u)) continue;
        const int is_last = stretch->elapsed + (*suggested)[lane] * (1.0 + SAME_TIME) >= stretch->whole;
        tried.step[lane] = is_last ? stretch->whole - stretch->elapsed : (*suggested)[lane];
        tried.reached[lane] = is_last ? stretch->whole : stretch->elapsed + (*suggested)[lane];
        if (is_last) last |= 1u << lane;
    }
    const Mask found = increments_in_lanes(group, &tried, mask_of(active));
    const Lanes own = size_of_lanes(tried.start, tried.end, group->increments[STAGES - 1]);
    Lanes least = splat(0.0);
    for (int lane = 0; lane < LANES; lane++) least[lane] = SMALLEST_SHARE * group->stretches[lane].whole;
    const Lanes slight = own / slightness_in_lanes(tried.start, tried.end);
    const Lanes sizes = select_lanes(tried.step * LEAST_FACTOR >= least, slight, own);
    const Lanes errors = select_lanes(found, sizes, splat(HUGE_VAL));
    Mask good = look_inside_lanes(group, machines, &tried, mask_of(active) & (errors <= splat(1.0)));
    if (bits_of(good)) {
        good = reach_in_lanes(group, tried.time + tried.step, tried.step, tried.end, good, rates);
        const unsigned lost = bits_of(choose_coordinates(group, good & steep_lanes(group)));
        keep_lanes(group, tried.end, rates, good);
        change_reference_lanes(group, good);
        for (int lane = 0; lane < LANES; lane++) {
            if (lost >> lane & 1u) end_lane(group, lane);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        Stretch *stretch = &group->stretches[lane];
        State *state = &group->instances[lane].state;
        const double error = errors[lane], step = tried.step[lane];
        if (!(active >> lane & 1u)) continue;
        double factor = error > 0.0 ? SAFETY * pow(error, -1.0 / ORDER) : MOST_FACTOR;
        factor = smaller(MOST_FACTOR, larger(LEAST_FACTOR, factor));
        if (good[lane]) {
            const double following = smaller(factor, stretch->most) * step;
            /* A step that was cut off at the end says little about how large the next may be. */
            (*suggested)[lane] = last >> lane & 1u ? larger(following, (*suggested)[lane]) : following;
            stretch->elapsed = tried.reached[lane];
            stretch->most = MOST_FACTOR;
            state->steps += 1.0;
        } else {
            state->retries += 1.0;
            stretch->refused += !(error < HUGE_VAL) || error <= 1.0;
            stretch->most = 1.0;
            (*suggested)[lane] = step * (error <= 1.0 ? LEAST_FACTOR : smaller(factor, 1.0));
            if (!((*suggested)[lane] >= SMALLEST_SHARE * stretch->whole)) alone |= 1u << lane;
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        if (alone >> lane & 1u) go_alone(group, machines, lane);
    }
}

/* -- from halt to halt ------------------------------------------------------------------------------------------- */

/* Plan the way to the next halt, with all rows until then. */
static void plan_stretch(Group *group, const Machines *machines, int lane) {
    Instance *instance = &group->instances[lane];
    Stretch *stretch = &group->stretches[lane];
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
    stretch->whole = stretch->end - stretch->begin;
    stretch->elapsed = stretch->looked = 0.0;
    stretch->most = MOST_FACTOR;
    stretch->tries = stretch->refused = 0;
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
            *(stretch->elapsed < stretch->whole ? &active : &arrived) |= 1u << lane;
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
