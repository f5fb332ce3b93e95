/* Clocks of sampled blocks: when they tick, and what a host sets. */

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

static int some_ticking(const State *state) {
    (void)state;
    return 0;
}

static int ticks_made(Instance *instance, double end) {
    (void)instance;
    (void)end;
    return 1;
}

#endif
