/* Write the state into the arguments of the traced functions. */
static void load(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
#define LOAD(name, size) COPY(parts->name, state->name, size);
    STATE_ARRAYS(LOAD)
#undef LOAD
    COPY(parts->parameters, state->parameters, PARAMETERS);
    COPY(parts->inputs, state->effective, INPUTS);
    COPY(parts->discrete, state->discrete, DISCRETE);
}
