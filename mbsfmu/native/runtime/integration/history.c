/* What the rule of integration remembers of the steps before: the step before, then earlier rates of all quantities. */

/* No iteration matrix is kept. */
static void forget_iteration_matrix(State *state) { memset(state->iteration_matrix_use, 0, sizeof state->iteration_matrix_use); }

/* Nothing is remembered. */
static void forget_steps(State *state) {
    memset(state->ahead, 0, sizeof state->ahead);
    memset(state->history, 0, sizeof state->history);
    forget_iteration_matrix(state);
}

#if HISTORY > 0

/* Where rates jump from those of the state to those that the arguments hold, what is remembered jumps with them. */
static void restart_history(Instance *instance) {
    double after[HISTORY];
    jumped(&instance->parts, after);
    COPY(instance->state.history, after, HISTORY);
}

#else

static void restart_history(Instance *instance) { (void)instance; }

#endif
