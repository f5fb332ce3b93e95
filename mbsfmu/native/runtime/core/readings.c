/* What can be read beside the state: made to fit it where somebody asks. */

/* Make the outputs fit the state. */
static void find_outputs(Instance *instance) {
    if (instance->known != NOTHING) return;
    load(instance);
    step_functions.outputs(&instance->parts, instance->outputs, instance->violation);
    instance->known = OUTPUTS_KNOWN;
}

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
