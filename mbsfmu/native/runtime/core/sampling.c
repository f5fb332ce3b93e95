/* When discrete states are updated, and what the updates make of them: as mbsfmu/simulation/sampling.py, which says more,
 * to the last bit. */

/* The number of the last instant up to a time; −1 before the first one. */
static double count_instants(const Sampling *sampling, double time) {
    return larger(floor((time - sampling->offset) / sampling->sample_time), -1.0);
}

/* The first instant after a time. */
static double next_instant(double passed) {
    double next = DBL_MAX;
    for (int k = 0; k < SAMPLINGS; k++) {
        next = smaller(next, samplings[k].offset + (count_instants(&samplings[k], passed) + 1.0) * samplings[k].sample_time);
    }
    return next;
}

/* By how much two times may differ that are one, where steps are made. */
static double same_time(const State *state, double step, double one, double other) {
    return time_tolerance(smaller(smaller(state->step_size, step), SHORTEST_SAMPLE_TIME), one, other);
}

#if DISCRETE > 0

/* Make the updates whose instants have passed up to a time since the last ones; accelerations and rates jump with them.
 * The inputs are those just before: what jumps at an instant has not jumped yet. */
static int sample(Instance *instance, double now) {
    State *state = &instance->state;
    const double since = state->sampled;
    double before[DISCRETE], updated[DISCRETE];
    int changed = 0;
    state->sampled = larger(since, now);
    if (!(next_instant(since) <= now)) return 1;
    COPY(before, state->discrete, DISCRETE);
    load(instance);
    for (int k = 0; k < SAMPLINGS; k++) {
        const int first = samplings[k].first, count = samplings[k].count;
        if (!(count_instants(&samplings[k], now) > count_instants(&samplings[k], since))) continue;
        updates(&instance->parts, updated);
        if (!all_finite(updated + first, count)) {
            const Sampling *failed = &samplings[k];
            return fail(instance, "%s: the update at t = %.9g s is not finite%s", failed->owner, now, failed->reason);
        }
        COPY(state->discrete + first, updated + first, count);
        COPY(instance->parts.discrete, state->discrete, DISCRETE);
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
