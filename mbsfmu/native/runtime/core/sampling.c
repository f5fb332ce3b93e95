/* When discrete states are updated, and what the updates make of them: as mbsfmu/simulation/run_loop.py, which says more,
 * to the last bit. */

/* The number of the last instant up to a time; −1 before the first one. */
static double count_instants(const Sampling *sampling, double time) {
    return larger(floor((time - sampling->offset) / sampling->sample_time), -1.0);
}

#if CLOCKS

/* Whether the host makes the updates of a block, by its clock. */
static int follows_clock(const Instance *instance, int k) { return instance->follows_clocks && samplings[k].has_clock; }

#else

static int follows_clock(const Instance *instance, int k) {
    (void)instance;
    (void)k;
    return 0;
}

#endif

/* The first instant of the FMU's own after a time. */
static double next_instant(const Instance *instance, double passed) {
    double next = DBL_MAX;
    for (int k = 0; k < SAMPLINGS; k++) {
        const Sampling *sampling = &samplings[k];
        if (follows_clock(instance, k)) continue;
        next = smaller(next, sampling->offset + (count_instants(sampling, passed) + 1.0) * sampling->sample_time);
    }
    return next;
}

/* By how much two times may differ that are one, where steps are made. */
static double same_time(const State *state, double step, double one, double other) {
    return time_tolerance(smaller(smaller(state->step_size, step), SHORTEST_SAMPLE_TIME), one, other);
}

#if DISCRETE > 0

/* Whether an update is to be made now. */
static int is_due(const Instance *instance, int k, double since, double now) {
#if CLOCKS
    if (follows_clock(instance, k)) return instance->state.ticking[k] != 0.0;
#endif
    return count_instants(&samplings[k], now) > count_instants(&samplings[k], since);
}

static int some_due(const Instance *instance, double since, double now) {
    int due = 0;
    for (int k = 0; k < SAMPLINGS; k++) due |= is_due(instance, k, since, now);
    return due;
}

/* The clock of an update that has been made has ticked. */
static void end_tick(Instance *instance, int k) {
#if CLOCKS
    State *state = &instance->state;
    state->ticks[k] += state->ticking[k];
    state->ticking[k] = 0.0;
#else
    (void)instance;
    (void)k;
#endif
}

/* Make the updates whose instants have passed up to a time since the last ones; accelerations and rates jump with them.
 * The inputs are those just before: what jumps at an instant has not jumped yet. */
static int sample(Instance *instance, double now) {
    State *state = &instance->state;
    const double since = state->sampled;
    double before[DISCRETE], updated[DISCRETE];
    int changed = 0;
    state->sampled = larger(since, now);
    if (!some_due(instance, since, now)) return 1;
    COPY(before, state->discrete, DISCRETE);
    load(instance);
    for (int k = 0; k < SAMPLINGS; k++) {
        const int first = samplings[k].first, count = samplings[k].count;
        if (!is_due(instance, k, since, now)) continue;
        updates(&instance->parts, updated);
        if (!all_finite(updated + first, count)) {
            const Sampling *failed = &samplings[k];
            return fail(instance, "%s: the update at t = %.9g s is not finite%s", failed->owner, now, failed->reason);
        }
        COPY(state->discrete + first, updated + first, count);
        COPY(instance->parts.discrete, state->discrete, DISCRETE);
        end_tick(instance, k);
    }
    for (int i = 0; i < DISCRETE; i++) changed |= state->discrete[i] != before[i];
    if (changed) make_consistent(instance);
    return 1;
}

#else

static int sample(Instance *instance, double now) {
    (void)instance;
    (void)now;
    return 1;
}

#endif

/* -- clocks of sampled blocks: when they tick, and what a host sets ------------------------------------------------- */

#if CLOCKS

#if PERIODIC_CLOCKS

/* When a periodic clock ticks next. */
static double next_tick(const State *state, int k) {
    return state->clock_start + samplings[k].offset + state->ticks[k] * samplings[k].sample_time;
}

#endif

/* Whether clocks are waiting for an update. */
static int some_ticking(const State *state) {
    int some = 0;
    for (int k = 0; k < SAMPLINGS; k++) some |= state->ticking[k] != 0.0;
    return some;
}

/* Whether a run may come to a time: a host must not go past a tick of a periodic clock without setting it. */
static int ticks_made(Instance *instance, double end) {
#if PERIODIC_CLOCKS
    const State *state = &instance->state;
    const double same = same_time(state, DBL_MAX, end, state->time);
    for (int k = 0; k < SAMPLINGS; k++) {
        const double tick = next_tick(state, k);
        if (!follows_clock(instance, k) || tick >= end - same) continue;
        return fail(
            instance, "the clock of %s ticks at t = %.12g s: set it in event mode there before you go on to %.12g s",
            samplings[k].owner, tick, end
        );
    }
#else
    (void)instance;
    (void)end;
#endif
    return 1;
}

static int has_clock(unsigned clock) { return clock < SAMPLINGS && samplings[clock].has_clock; }

static void follow_clocks(Instance *instance) { instance->follows_clocks = 1; }

static int is_ticking(const Instance *instance, unsigned clock) { return instance->state.ticking[clock] != 0.0; }

static double interval_of(unsigned clock) { return samplings[clock].sample_time; }

static double shift_of(unsigned clock) { return samplings[clock].offset; }

static Status set_clock(Instance *instance, unsigned clock, int ticks) {
    State *state = &instance->state;
    const int k = (int)clock;
    if (!follows_clock(instance, k)) return REFUSE("clocks are for instances with event mode");
    if (state->mode != AT_EVENTS) return REFUSE("clocks are set in event mode only");
#if PERIODIC_CLOCKS
    const double tick = next_tick(state, k);
    if (ticks && !(fabs(tick - state->time) <= same_time(state, DBL_MAX, tick, state->time))) {
        return REFUSE("the clock of %s ticks at t = %.12g s, not at %.12g s", samplings[k].owner, tick, state->time);
    }
#endif
    state->ticking[k] = ticks ? 1.0 : 0.0;
    return DONE;
}

#else

static inline int some_ticking(const State *state) {
    (void)state;
    return 0;
}

static inline int ticks_made(Instance *instance, double end) {
    (void)instance;
    (void)end;
    return 1;
}

#endif
