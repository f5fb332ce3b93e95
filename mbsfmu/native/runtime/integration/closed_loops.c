/* Whether a state that steps have reached is one of the mechanism: loops closed, and no joint turned over. */

/* Whether no joint is turned by half a turn, which the constraints let it. */
static int joints_aligned(Instance *instance, double time) {
#if ALIGNED > 0
    double values[ALIGNED];
    misalignment(&instance->parts, values);
    for (int i = 0; i < ALIGNED; i++) {
        if (values[i] < TURNED) continue;
        return fail(
            instance, "at t = %.9g s joint %s is turned by half a turn against its own orientation; " REMEDY, time,
            aligned_names[i]
        );
    }
#else
    (void)instance;
    (void)time;
#endif
    return 1;
}

/* Whether the loops are closed as far as the formulation promises, by no joint that is turned over. */
static int loops_closed(Instance *instance, double time) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    if (!joints_aligned(instance, time)) return 0;
#if CONSTRAINTS > 0 && !CLOSES_LOOPS
    double violation[CONSTRAINTS];
    int worst = 0;
    gap(parts, violation);
    for (int i = 1; i < CONSTRAINTS; i++) {
        if (fabs(violation[i]) * loop_scales[worst] > fabs(violation[worst]) * loop_scales[i]) worst = i;
    }
    if (fabs(violation[worst]) <= OPENING * loop_scales[worst]) return 1;
    return fail(
        instance, "at t = %.9g s the loop has come open by %.3g %s at joint %s; " REMEDY, time,
        fabs(violation[worst]), loop_units[worst], loop_names[worst]
    );
#else
    return 1; /* they are closed before a step is done */
#endif
}
