/* Motion that is prescribed must go on from where it is. */

#if DRIVEN > 0

static int jumps(Instance *instance, int row, const char *what, double jump, const char *per) {
    return fail(
        instance,
        "at t = %.9g s the %s of %s jumps by %.3g %s%s; it must go on from where it was, with the velocity and "
        "acceleration that belong to it",
        instance->state.time, what, driven_names[row], jump, driven_units[row], per
    );
}

/* Whether what is prescribed from now on is where the state is. */
static int follows_motion(Instance *instance) {
    double gaps[DRIVEN], rates[DRIVEN], drifts[DRIVEN];
    load(instance);
    step_functions.inputs_at(instance, instance->state.time, instance->parts.inputs);
    missed(&instance->parts, gaps, rates, drifts);
    for (int k = 0; k < DRIVEN; k++) {
        const double scale = driven_scales[k];
        if (!(fabs(gaps[k]) <= JUMP * scale)) return jumps(instance, k, "position", -gaps[k], "");
        if (!(fabs(rates[k]) <= JUMP_OF_RATE * (scale + fabs(drifts[k])))) {
            return jumps(instance, k, "velocity", -rates[k], "/s");
        }
    }
    return 1;
}

#else

static int follows_motion(Instance *instance) {
    (void)instance;
    return 1;
}

#endif
