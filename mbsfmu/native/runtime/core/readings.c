/* What can be read beside the state, made to fit it where somebody asks: outputs, and forces and moments in joints. Where
 * redundant constraints leave these open, they are those of least norm. */

/* Make the outputs fit the state. */
static void find_outputs(Instance *instance) {
    if (instance->known != NOTHING) return;
    load(instance);
    step_functions.outputs(&instance->parts, instance->outputs, instance->violation);
    instance->known = OUTPUTS_KNOWN;
}

#if PLAY > 0

/* Take away what redundant joints hold against each other: r - A N mu with Phi_z^T N = 0 and the shortest rest. */
static void shorten_reactions(Parts *parts, double *values) {
    double *jacobian = scratch_of_reactions(parts);
    double *turned = jacobian + ALL_CONSTRAINTS * COORDINATES, *idle = turned + COORDINATES * ALL_CONSTRAINTS;
    double *held = idle + ALL_CONSTRAINTS * ALL_CONSTRAINTS, *work = held + REACTIONS * PLAY, solution[PLAY];
    int orders[SQUARES_ORDERS(MOST(COORDINATES, REACTIONS), ALL_CONSTRAINTS)];
    all_closure_jacobian(parts, jacobian);
    for (int i = 0; i < ALL_CONSTRAINTS; i++) {
        for (int j = 0; j < COORDINATES; j++) turned[j + COORDINATES * i] = jacobian[i + ALL_CONSTRAINTS * j];
    }
    null_space(COORDINATES, ALL_CONSTRAINTS, turned, idle, 0.0, RANK, work, orders);
    for (int k = 0; k < PLAY; k++) {
        COPY(parts->shared_multipliers, idle + ALL_CONSTRAINTS * k, ALL_CONSTRAINTS);
        shared_reactions(parts, held + REACTIONS * k);
    }
    least_squares(REACTIONS, PLAY, held, values, solution, 1e-12, work, orders);
    for (int k = 0; k < PLAY; k++) {
        for (int i = 0; i < REACTIONS; i++) values[i] -= held[i + REACTIONS * k] * solution[k];
    }
}

#else

static void shorten_reactions(Parts *parts, double *values) {
    (void)parts;
    (void)values;
}

#endif

/* Reactions are found when they are asked for: most users do without. */
static void find_reactions(Instance *instance) {
    if (instance->known == EVERYTHING_KNOWN) return;
    load(instance);
#if RECOMPUTES_REACTIONS
    /* The multipliers of a step balance accelerations that are projected afterwards: both are found anew. */
    double rates[ROOM(STATES)];
    find_motion(&instance->parts, UNDETERMINED * NEAR_CHANGE, rates);
#endif
    reactions(&instance->parts, instance->reactions);
    shorten_reactions(&instance->parts, instance->reactions);
    instance->known = EVERYTHING_KNOWN;
}
