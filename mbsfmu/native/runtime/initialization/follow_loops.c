/* Algebraic loops between systems that are not linear: what they are solved for is where the next solution is looked for. */

/* Solve them where the arguments are, and begin there the next time; returns 0 with a reason where one is not solved. */
static int follow_loops(Instance *instance) {
#if LOOP_ITERATES > 0
    const Parts *parts = &instance->parts;
    double off[ALGEBRAIC_LOOPS], found[LOOP_ITERATES];
    loop_solutions(parts, off, found);
    for (int i = 0; i < ALGEBRAIC_LOOPS; i++) {
        if (off[i] == 0.0) continue;
        const double guess = parts->loop_iterates[first_loop_iterates[i]];
        return fail(instance, "%s = %.6g on: it stays off by %.3g", unsolved_loops[i], guess, off[i]);
    }
    COPY(parts->loop_iterates, found, LOOP_ITERATES);
    COPY(instance->state.loop_iterates, found, LOOP_ITERATES);
#else
    (void)instance;
#endif
    return 1;
}

#if OWN_MOTION
static void motion(Instance *instance);
#endif

/* Whether it is not for a loop that is not solved that numbers are not finite; else there is a reason. */
static int loops_hold(Instance *instance) {
#if OWN_MOTION
    if (LOOP_ITERATES > 0) motion(instance); /* velocities may follow from momenta */
#endif
    return follow_loops(instance);
}
