/* Transport of the errors of several machines along their steps, as error_transport.c has it of one. */

#if ERROR > 0

static void lose_errors(Group *group, Mask lanes, int loss) {
    const unsigned lost = bits_of(lanes);
    for (int lane = 0; lane < LANES; lane++) {
        if (lost >> lane & 1u) lose_error(&group->instances[lane].state, loss);
    }
}

/* z', z'' and x' of arrays. */
static void pack_rates_in_lanes(const Lanes *velocities, const Lanes *accelerations, const Lanes *of_states, Lanes *rates) {
    COPY_LANES(rates, velocities, COORDINATES);
    COPY_LANES(rates + COORDINATES, accelerations, COORDINATES);
    COPY_LANES(rates + 2 * COORDINATES, of_states, STATES);
}

/* The defects of z, z' and x in steps to the end that the arguments hold; what is remembered of the rates goes on where a step
 * is made. */
static void find_defects_in_lanes(Group *group, Lanes step, Mask made, Lanes *defects) {
    Lanes *const last = group->error_history, *const before = last + ERROR_RATES, *const second = before + ERROR_RATES;
    Lanes *const mean_before = second + ERROR_RATES;
    Lanes *const step_before = mean_before + ERROR_RATES, *const count = step_before + 1;
    Lanes first[ROOM(ERROR_RATES)], ends[ROOM(ERROR_RATES)];
    pack_rates_in_lanes(group->state.velocities, group->state.accelerations, group->state.rates, first);
    pack_rates_in_lanes(group->parts.velocities, group->parts.accelerations, group->parts.rates, ends);
    Mask jumps = *count == (Lanes){0};
    for (int i = 0; i < ERROR_RATES; i++) jumps |= first[i] != last[i];
    const Mask bends = (*count > (Lanes){0}) & ~(jumps & (*count > splat(1.0)));
    const Mask late = *count == splat(1.0);
    const Lanes scale = DEFECT * (step * step * step), apart = step + *step_before;
    const Lanes going = select_lanes(step < *step_before, step / *step_before, splat(1.0));
    const Lanes onward = (Lanes)(~jumps & (*count > splat(2.0)) & (Mask)going);
    for (int i = 0; i < ERROR_RATES; i++) {
        const Lanes slope = (ends[i] - first[i]) / step;
        const Lanes bend = (Lanes)(bends & (Mask)(2.0 * (slope - before[i]) / apart));
        const Lanes mean = 0.5 * (bend + second[i]);
        const Lanes used = select_lanes(late, LATE * bend, mean + onward * (mean - mean_before[i]));
        defects[i] = scale * select_lanes(jumps, bend, used);
        last[i] = select_lanes(made, ends[i], last[i]);
        before[i] = select_lanes(made, slope, before[i]);
        second[i] = select_lanes(made, bend, second[i]);
        mean_before[i] = select_lanes(made, mean, mean_before[i]);
    }
    *step_before = select_lanes(made, step, *step_before);
    const Lanes more = select_lanes(late, splat(2.0), splat(3.0));
    *count = select_lanes(made, select_lanes(bends & ~jumps, more, splat(1.0)), *count);
}

/* The residual where the loops are nearly closed by all coordinates; returns lanes where it cannot be evaluated. */
static Mask evaluate_lanes_near(Group *group, const Lanes *coordinates, const Lanes *unknowns, Lanes *residual) {
    const LaneParts *parts = &group->parts;
    Mask lost = {0};
    COPY_LANES(parts->coordinates, coordinates, COORDINATES);
#if RANK > 0
    LaneClosure closure;
    find_closure(group, &closure);
    lost = closure.lost;
    reduce_lanes(group, closure.jacobian, closure.inverse);
    close_linearly(group, &closure, ~(closure.size <= splat(CLOSED)));
#endif
    COPY_LANES(parts->unknowns, unknowns, UNKNOWNS);
    lanes_reduced_residual(parts, residual);
    return lost;
}

/* Begin the steps where the exact solutions are, and predict where they end: all coordinates, and the unknowns. */
static void begin_exact_in_lanes(Group *group, Lanes step, const Lanes *defects, Lanes *coordinates, Lanes *guess) {
    const LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    const Lanes *error = group->error;
    Lanes positions[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)], accelerations[ROOM(COORDINATES)];
    for (int j = 0; j < COORDINATES; j++) {
        positions[j] = state->coordinates[j] - OF_Z(error)[j] - defects[j];
        velocities[j] = state->velocities[j] - OF_V(error)[j];
        accelerations[j] = state->accelerations[j] - OF_A(error)[j] - 2.0 / step * defects[COORDINATES + j];
        const Lanes pushed = accelerations[j] + (parts->accelerations[j] - OF_A(error)[j]);
        coordinates[j] = positions[j] + step * velocities[j] + 0.25 * (step * step) * pushed;
    }
    for (int k = 0; k < FREEDOM; k++) {
        parts->begin[k] = pick(group, positions, group->independent[k]);
        parts->begin_rates[k] = pick(group, velocities, group->independent[k]);
        parts->begin_accelerations[k] = pick(group, accelerations, group->independent[k]);
        guess[k] = pick(group, coordinates, group->independent[k]);
    }
    for (int i = 0; i < STATES; i++) {
        const int k = FREEDOM + i;
        const Lanes of_rate = OF_RATES(error)[i];
        parts->begin[k] = state->states[i] - (OF_X(error)[i] + defects[2 * COORDINATES + i]);
        parts->begin_rates[k] = state->rates[i] - of_rate;
        guess[k] = parts->begin[k] + 0.5 * step * (parts->begin_rates[k] + (parts->rates[i] - of_rate));
    }
}

/* The ends of steps that the arguments hold. */
typedef struct {
    Lanes coordinates[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)], accelerations[ROOM(COORDINATES)];
    Lanes multipliers[ROOM(CONSTRAINTS)], states[ROOM(STATES)], rates[ROOM(STATES)];
} LaneEnds;

/* Find the errors where the steps end: the arguments are where these were predicted to, from which increments lead. */
static void end_exact_in_lanes(const Group *group, Lanes step, const LaneEnds *ends, const Lanes *increment, Lanes *error) {
    const LaneParts *parts = &group->parts;
    for (int j = 0; j < COORDINATES; j++) {
        Lanes moved = RANK == 0 ? increment[j] : (Lanes){0};
        for (int c = 0; RANK > 0 && c < FREEDOM; c++) moved += parts->basis[j + COORDINATES * c] * increment[c];
        OF_Z(error)[j] = ends->coordinates[j] - (parts->coordinates[j] - moved);
        OF_V(error)[j] = ends->velocities[j] - (parts->velocities[j] - 2.0 / step * moved);
        OF_A(error)[j] = ends->accelerations[j] - (parts->accelerations[j] - 4.0 / (step * step) * moved);
    }
    for (int i = 0; i < STATES; i++) {
        OF_X(error)[i] = ends->states[i] - (parts->states[i] - increment[FREEDOM + i]);
        OF_RATES(error)[i] = ends->rates[i] - (parts->rates[i] - 2.0 / step * increment[FREEDOM + i]);
    }
}

/* Carry the errors along steps from the states to what the arguments hold, where these are made; the arguments stay, but for
 * R_z and G. */
static void carry_error_in_lanes(Group *group, Lanes step, Mask made) {
    const LaneParts *parts = &group->parts;
    LaneEnds ends;
    Lanes defects[ROOM(ERROR_RATES)], coordinates[ROOM(COORDINATES)], guess[ROOM(UNKNOWNS)];
    Lanes residual[ROOM(UNKNOWNS)], increment[ROOM(UNKNOWNS)], error[ERROR];
#define KEEP(name, size) COPY_LANES(ends.name, parts->name, size);
#define PUT_BACK(name, size) COPY_LANES(parts->name, ends.name, size);
#define ENDS(EACH) \
    EACH(coordinates, COORDINATES) EACH(velocities, COORDINATES) EACH(accelerations, COORDINATES) \
    EACH(multipliers, CONSTRAINTS) EACH(states, STATES) EACH(rates, STATES)
    ENDS(KEEP)
    find_defects_in_lanes(group, step, made, defects);
    begin_exact_in_lanes(group, step, defects, coordinates, guess);
    Mask lost = evaluate_lanes_near(group, coordinates, guess, residual);
    multiply_lanes(UNKNOWNS, UNKNOWNS, group->inverse, residual, increment);
    end_exact_in_lanes(group, step, &ends, increment, error);
    const Lanes farthest = (Lanes){0} + FARTHEST;
    for (int i = 0; i < ERROR; i++) lost |= ~((error[i] <= farthest) & (error[i] >= -farthest));
    const Mask found = made & ~lost;
    for (int i = 0; i < ERROR; i++) group->error[i] = select_lanes(found, error[i], group->error[i]);
    lose_errors(group, made & lost, LOST_UNSOLVED);
    ENDS(PUT_BACK)
#undef ENDS
#undef KEEP
#undef PUT_BACK
}

#else

static void lose_errors(Group *group, Mask lanes, int loss) { (void)group, (void)lanes, (void)loss; }
static void carry_error_in_lanes(Group *group, Lanes step, Mask made) { (void)group, (void)step, (void)made; }

#endif
