/* Algebraic loops between systems that are not linear: what they are solved for is where the next solution is looked for. */

/* Solve them where the arguments are, and begin there the next time; returns 0 with a reason where one is not solved. */
static int follow_loops(Instance *instance) {
#if GUESSES > 0
    const Parts *parts = &instance->parts;
    double off[ALGEBRAIC_LOOPS], found[GUESSES];
    loop_solutions(parts, off, found);
    for (int i = 0; i < ALGEBRAIC_LOOPS; i++) {
        if (off[i] == 0.0) continue;
        const double guess = parts->guesses[first_guesses[i]];
        return fail(instance, "%s = %.6g on: it stays off by %.3g", unsolved_loops[i], guess, off[i]);
    }
    COPY(parts->guesses, found, GUESSES);
    COPY(instance->state.guesses, found, GUESSES);
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
    if (GUESSES > 0) motion(instance); /* velocities may follow from momenta */
#endif
    return follow_loops(instance);
}
