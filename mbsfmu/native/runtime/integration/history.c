/* What the rule of integration remembers of the steps before: the step before, then earlier rates of all quantities. */

/* No tangent is kept. */
static void forget_tangent(State *state) { memset(state->tangent_use, 0, sizeof state->tangent_use); }

/* Nothing is remembered. */
static void forget_steps(State *state) {
    memset(state->ahead, 0, sizeof state->ahead);
    memset(state->history, 0, sizeof state->history);
    forget_tangent(state);
}

#if HISTORY > 0

/* Where rates jump from those of the state to those that the arguments hold, what is remembered jumps with them. */
static void let_history_jump(Instance *instance) {
    double after[HISTORY];
    jumped(&instance->parts, after);
    COPY(instance->state.history, after, HISTORY);
}

#else

static void let_history_jump(Instance *instance) { (void)instance; }

#endif
