/* Derivatives of inputs and outputs by time, and directional derivatives. */

static Status set_slopes(Instance *instance, const unsigned *inputs, size_t count, const double *slopes) {
    State *state = &instance->state;
    double now[ROOM(INPUTS)] = {0.0};
    FOR_STEPS("inputs are given all the time");
    if (state->mode == TERMINATED) return REFUSE("the FMU is terminated; nothing can be set");
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[inputs[k]];
        if (variable->kind != INPUT) return REFUSE("%s is no input; its derivative cannot be set", variable->name);
        if (!(fabs(slopes[k]) <= MOST_REACHED)) {
            return REFUSE("the derivative of %s must be a finite number of at most %g", variable->name, MOST_REACHED);
        }
    }
    step_functions.inputs_at(instance, state->time, now);
    for (size_t k = 0; k < count; k++) {
        const int input = variables[inputs[k]].index;
        if (!state->held[input]) {
            state->inputs[input] = now[input];
            state->held[input] = 1;
            touch(state);
        }
        if (state->slopes[input] != slopes[k]) {
            touch(state);
            instance->discarded.is_set = 0;
        }
        state->slopes[input] = slopes[k];
    }
    return DONE;
}

static Status lead(Instance *instance, const unsigned *inputs, size_t count, const double *values, double end) {
    State *state = &instance->state;
    double now[ROOM(INPUTS)] = {0.0};
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[inputs[k]];
        if (variable->kind != INPUT) return REFUSE("%s is no input; it cannot be set during a step", variable->name);
        if (check_value(instance, variable, values[k]) != DONE) return REFUSED;
    }
    if (!(end > state->time)) return REFUSE("no step begins: nothing can be set during it");
    step_functions.inputs_at(instance, state->time, now);
    for (size_t k = 0; k < count; k++) {
        const double slope = (values[k] - now[variables[inputs[k]].index]) / (end - state->time);
        /* What has a rate runs on by it where its slope is zero: one that is to stay has the least slope there is. */
        const double led = slope == 0.0 ? DBL_MIN : slope;
        if (set_slopes(instance, &inputs[k], 1, &led) != DONE) return REFUSED;
    }
    return DONE;
}

#if CO_SIMULATION

static Status get_rates(Instance *instance, const unsigned *outputs, size_t count, double *rates) {
    double of_outputs[ROOM(OUTPUTS)];
    const State *state = &instance->state;
    FOR_STEPS("rates of outputs are found");
    if (!up_to_date(instance)) return REFUSE("derivatives cannot be computed: %s", instance->reason);
    load(instance);
    COPY(instance->parts.input_rates, state->slopes, INPUTS);
    output_rates(&instance->parts, of_outputs);
    for (size_t k = 0; k < count; k++) {
        const Variable *variable = &variables[outputs[k]];
        switch (variable->kind) {
            case COORDINATE: rates[k] = state->velocities[variable->index]; break;
            case VELOCITY: rates[k] = state->accelerations[variable->index]; break;
            case STATE: rates[k] = state->rates[variable->index]; break;
            case INTEGRAL: rates[k] = state->integral_rates[variable->index]; break;
            case OUTPUT:
                if (output_needs_accelerations[variable->index]) {
                    return REFUSE("%s depends on accelerations; its derivative is not known", variable->name);
                }
                rates[k] = of_outputs[variable->index];
                break;
            case HELD:
            case OF_SOLVER: rates[k] = 0.0; break;
            case CONTINUOUS_STATE:
            case DERIVATIVE:
            case INDICATOR: return REFUSE("the derivative of %s is not known", variable->name);
            case ACCELERATION:
            case REACTION: return REFUSE("%s depends on accelerations; its derivative is not known", variable->name);
            case VIOLATION: return REFUSE("the derivative of %s is not known", variable->name);
            default: return REFUSE("%s is no output; its derivative is not known", variable->name);
        }
    }
    return DONE;
}

#else

static Status get_rates(Instance *instance, const unsigned *outputs, size_t count, double *rates) {
    (void)outputs;
    (void)count;
    (void)rates;
    FOR_STEPS("rates of outputs are found");
    return REFUSED;
}

#endif

/* Where everything that changes with what is set has its changes at the start afterwards. */
static int change_start(
    Instance *instance, double *d_parameters, const double *d_inputs, double *d_calculated, double *outputs
) {
#if CHANGES
    const Parts *parts = &instance->parts;
    if (!vary_balances(instance, d_parameters, d_inputs, d_calculated)) return 0;
    load(instance);
    COPY(parts->d_parameters, d_parameters, PARAMETERS);
    COPY(parts->d_inputs, d_inputs, INPUTS);
    for (int i = 0; i < INTEGRALS; i++) parts->d_integrals[i] = 0.0;
    if (!vary_placed(instance)) return 0;
    load(instance);
    start_change(parts, outputs);
#else
    Variation found;
    if (!vary_initialization(instance, d_parameters, d_inputs, d_calculated, &found)) return 0;
    COPY(outputs, found.outputs, OUTPUTS);
#endif
    return 1;
}

/* Derivatives of the start, by parameters and inputs. */
static Status initial_derivative(
    Instance *instance, double *d_parameters, const double *d_inputs, const unsigned *unknowns, size_t count, double *values
) {
    const Parts *parts = &instance->parts;
    double d_calculated[ROOM(CALCULATED_PARAMETERS)] = {0.0};
    double outputs[ROOM(OUTPUTS)];
    if (!change_start(instance, d_parameters, d_inputs, d_calculated, outputs)) {
        return REFUSE("derivatives cannot be computed: %s", instance->reason);
    }
    for (size_t k = 0; k < count; k++) {
        const Variable *unknown = &variables[unknowns[k]];
        const int i = unknown->index;
        switch (unknown->kind) {
            case COORDINATE: values[k] = parts->d_coordinates[i]; break;
            case VELOCITY: values[k] = parts->d_velocities[i]; break;
            case ACCELERATION: values[k] = parts->d_accelerations[i]; break;
            case STATE: values[k] = parts->d_states[i]; break;
            case INTEGRAL: values[k] = parts->d_integrals[i]; break;
            case OUTPUT: values[k] = outputs[i]; break;
            case CALCULATED: values[k] = d_calculated[i]; break;
            case OF_SOLVER: values[k] = 0.0; break;
            case REACTION:
            case CONTINUOUS_STATE:
            case DERIVATIVE:
            case INDICATOR:
            case VIOLATION: return REFUSE("the derivative of %s at the start is not known", unknown->name);
            default: return REFUSE("%s is no unknown of the start", unknown->name);
        }
    }
    return DONE;
}

/* Changes of accelerations and outputs along a direction of inputs: positions, velocities and states are given. */
static void change_directly(Instance *instance, const double *d_inputs, double *accelerations, double *outputs) {
#if CHANGES
    COPY(instance->parts.d_inputs, d_inputs, INPUTS);
    direct_change(&instance->parts, outputs);
    COPY(accelerations, instance->parts.d_accelerations, COORDINATES);
#else
    double by_inputs[ROOM(OUTPUTS * INPUTS)], by_accelerations[ROOM(OUTPUTS * COORDINATES)];
    double mass[ROOM(COORDINATES * COORDINATES)], rest[ROOM(COORDINATES)], rates[ROOM(STATES)];
    double forcing[ROOM(COORDINATES * INPUTS)], turning[ROOM(CONSTRAINTS * INPUTS)], turned[ROOM(SADDLE)];
    equilibrium(&instance->parts, mass, rest, rates, forcing);
    feedthrough(&instance->parts, by_inputs, by_accelerations, turning);
    /* M da + Phi_z^T dlambda = -d(M a - Q)/du du, Phi_z da = -dPhi_tt/du du. */
    for (int i = 0; i < SADDLE; i++) turned[i] = 0.0;
    for (int j = 0; j < INPUTS; j++) {
        for (int i = 0; i < COORDINATES; i++) turned[i] -= forcing[i + COORDINATES * j] * d_inputs[j];
        for (int i = 0; i < CONSTRAINTS; i++) turned[COORDINATES + i] -= turning[i + CONSTRAINTS * j] * d_inputs[j];
    }
    step_functions.solve_saddle(&instance->parts, mass, NEAR_CHANGE, turned);
    COPY(accelerations, turned, COORDINATES);
    for (int i = 0; i < OUTPUTS; i++) {
        outputs[i] = 0.0;
        for (int j = 0; j < INPUTS; j++) outputs[i] += by_inputs[i + OUTPUTS * j] * d_inputs[j];
        for (int j = 0; j < COORDINATES; j++) outputs[i] += by_accelerations[i + OUTPUTS * j] * turned[j];
    }
#endif
}

/* Derivatives while stepping, by inputs. */
static Status direct_derivative(
    Instance *instance, const double *d_inputs, const unsigned *unknowns, size_t count, double *values
) {
    double accelerations[ROOM(COORDINATES)], outputs[ROOM(OUTPUTS)];
    change_directly(instance, d_inputs, accelerations, outputs);
    for (size_t k = 0; k < count; k++) {
        const Variable *unknown = &variables[unknowns[k]];
        const int i = unknown->index;
        values[k] = 0.0;
        if (unknown->kind == INPUT || unknown->kind == PARAMETER || is_setting(unknown)) {
            return REFUSE("%s is no unknown", unknown->name);
        }
        if (unknown->kind == REACTION) return REFUSE("the derivative of %s is not known", unknown->name);
        if (unknown->kind == ACCELERATION) values[k] = accelerations[i];
        if (unknown->kind == OUTPUT) values[k] = outputs[i];
    }
    return DONE;
}

#if MODEL_EXCHANGE

/* Whether derivatives are by continuous states, or of what only who integrates them asks for. */
static int is_of_flow(const unsigned *unknowns, size_t unknown_count, const unsigned *knowns, size_t known_count) {
    for (size_t k = 0; k < known_count; k++) {
        if (state_index(knowns[k]) < POINT) return 1;
    }
    for (size_t k = 0; k < unknown_count; k++) {
        if (variables[unknowns[k]].kind == DERIVATIVE) return 1;
    }
    return 0;
}

#if CHANGES_KNOWN

#if KEEPS_JACOBIAN

/* Whether the kept Jacobian is that of the state. */
static int is_at_jacobian(const State *state, const PointJacobian *jacobian) {
    if (!jacobian->is_known || jacobian->time != state->time) return 0;
    if (memcmp(jacobian->dependent, state->dependent, sizeof(int) * COORDINATES) != 0) return 0;
#define DIFFERS(name, size) \
    if (memcmp(jacobian->name, state->name, sizeof(double) * (size_t)(size)) != 0) return 0;
    OF_JACOBIAN(DIFFERS)
#undef DIFFERS
    return 1;
}

/* Find the Jacobian at the state, where it is another one, and its columns of inputs where these are wanted. */
static int find_point_jacobian(Instance *instance, int with_inputs) {
    const State *state = &instance->state;
    PointJacobian *jacobian = &instance->jacobian;
    if (!is_at_jacobian(state, jacobian)) {
        jacobian->is_known = jacobian->inputs_known = 0;
        load(instance);
        if (!flow_functions.find_jacobian(instance, jacobian)) return 0;
        jacobian->time = state->time;
        memcpy(jacobian->dependent, state->dependent, sizeof(int) * COORDINATES);
#define REMEMBER(name, size) COPY(jacobian->name, state->name, size);
        OF_JACOBIAN(REMEMBER)
#undef REMEMBER
        jacobian->is_known = 1;
    }
    if (with_inputs && !jacobian->inputs_known) {
        load(instance);
        if (!flow_functions.find_input_jacobian(instance, jacobian)) return 0;
        jacobian->inputs_known = 1;
    }
    return 1;
}

static void add_column(const double *column, double factor, double *sum) {
    for (int i = 0; i < POINT; i++) sum[i] += factor * column[i];
}

/* Find the change of the rates along a direction, and where it is wanted that of all else. */
static int find_direction(
    Instance *instance, const double *d_y, const double *d_inputs, int all, Change *change
) {
    const PointJacobian *jacobian = &instance->jacobian;
    int with_inputs = 0;
    for (int j = 0; j < INPUTS; j++) with_inputs |= d_inputs[j] != 0.0;
    if (!find_point_jacobian(instance, with_inputs)) return 0;
    for (int i = 0; i < POINT; i++) change->rates[i] = 0.0;
    for (int j = 0; j < POINT - INTEGRALS; j++) {
        if (d_y[j] != 0.0) add_column(jacobian->by_states + POINT * j, d_y[j], change->rates);
    }
    for (int j = 0; j < INPUTS; j++) {
        if (d_inputs[j] != 0.0) add_column(jacobian->by_inputs + POINT * j, d_inputs[j], change->rates);
    }
    if (!all) return 1;
    load(instance);
    return flow_functions.find_change(instance, d_y, d_inputs, change);
}

#else

static int find_direction(
    Instance *instance, const double *d_y, const double *d_inputs, int all, Change *change
) {
    (void)all;
    load(instance);
    return flow_functions.find_change(instance, d_y, d_inputs, change);
}

#endif

/* Whether there are unknowns that are neither rates nor continuous states. */
static int asks_for_others(const unsigned *unknowns, size_t count) {
    for (size_t k = 0; k < count; k++) {
        if (variables[unknowns[k]].kind != DERIVATIVE && state_index(unknowns[k]) == POINT) return 1;
    }
    return 0;
}

/* Derivatives by continuous states and inputs. */
static Status flow_derivative(
    Instance *instance, const double *d_y, const double *d_inputs, const unsigned *unknowns, size_t count, double *values
) {
    Change change;
    if (!find_direction(instance, d_y, d_inputs, asks_for_others(unknowns, count), &change)) {
        return REFUSE("derivatives cannot be computed: %s", instance->reason);
    }
    for (size_t k = 0; k < count; k++) {
        const Variable *unknown = &variables[unknowns[k]];
        const int i = unknown->index, of_state = state_index(unknowns[k]);
        if (of_state < POINT) {
            values[k] = d_y[of_state];
            continue;
        }
        switch (unknown->kind) {
            case DERIVATIVE: values[k] = change.rates[i]; break;
            case COORDINATE: values[k] = change.coordinates[i]; break;
            case VELOCITY: values[k] = change.velocities[i]; break;
            case ACCELERATION: values[k] = change.accelerations[i]; break;
            case OUTPUT: values[k] = change.outputs[i]; break;
            case HELD:
            case OF_SOLVER: values[k] = 0.0; break;
            case REACTION:
            case INDICATOR:
            case VIOLATION: return REFUSE("the derivative of %s is not known", unknown->name);
            default: return REFUSE("%s is no unknown", unknown->name);
        }
    }
    return DONE;
}

#else

static Status flow_derivative(
    Instance *instance, const double *d_y, const double *d_inputs, const unsigned *unknowns, size_t count, double *values
) {
    (void)d_y;
    (void)d_inputs;
    (void)unknowns;
    (void)count;
    (void)values;
    return REFUSE("derivatives by continuous states, and of rates, are not known of this formulation");
}

#endif

static Status get_flow_derivatives(
    Instance *instance, const unsigned *unknowns, size_t unknown_count, const unsigned *knowns, size_t known_count,
    const double *direction, double *values
) {
    double d_y[ROOM(POINT)] = {0.0}, d_inputs[ROOM(INPUTS)] = {0.0};
    for (size_t k = 0; k < known_count; k++) {
        const Variable *known = &variables[knowns[k]];
        const int of_state = state_index(knowns[k]);
        if (known->kind == INPUT) {
            d_inputs[known->index] += direction[k];
        } else if (of_state < POINT) {
            d_y[of_state] += direction[k];
        } else {
            return REFUSE("%s is no known of derivatives", known->name);
        }
    }
    return flow_derivative(instance, d_y, d_inputs, unknowns, unknown_count, values);
}

#endif

static Status find_any_derivatives(
    Instance *instance, const unsigned *unknowns, size_t unknown_count, const unsigned *knowns, size_t known_count,
    const double *direction, double *values
) {
    double d_inputs[ROOM(INPUTS)] = {0.0}, d_parameters[ROOM(PARAMETERS)] = {0.0};
    const int at_start = instance->state.mode == INITIALIZING;
#if MODEL_EXCHANGE
    if (!at_start && is_of_flow(unknowns, unknown_count, knowns, known_count)) {
        if (!is_located(instance)) return REFUSE("derivatives cannot be computed: %s", instance->reason);
        return get_flow_derivatives(instance, unknowns, unknown_count, knowns, known_count, direction, values);
    }
#endif
    if (!up_to_date(instance)) return REFUSE("derivatives cannot be computed: %s", instance->reason);
    for (size_t k = 0; k < known_count; k++) {
        const Variable *known = &variables[knowns[k]];
        if (known->kind == INPUT) {
            d_inputs[known->index] += direction[k];
        } else if (at_start && known->kind == PARAMETER && known->settable) {
            d_parameters[known->index] += direction[k];
        } else if (!(at_start && is_setting(known))) {
            return REFUSE("%s is no known of derivatives %s", known->name, at_start ? "at the start" : "while stepping");
        }
    }
    load(instance);
    if (at_start && DISCRETE > 0) {
        return REFUSE("derivatives at the start are not known where a block is updated there, as %s is", samplings[0].owner);
    }
    if (at_start) return initial_derivative(instance, d_parameters, d_inputs, unknowns, unknown_count, values);
    return direct_derivative(instance, d_inputs, unknowns, unknown_count, values);
}

/* Whether derivatives that were found are numbers; those by values of 1e50 may overflow. */
static Status check_derivatives(Instance *instance, const unsigned *unknowns, size_t count, const double *values) {
    for (size_t k = 0; k < count; k++) {
        if (!all_finite(&values[k], 1)) return REFUSE("the derivative of %s is %g here", variables[unknowns[k]].name, values[k]);
    }
    return DONE;
}

static Status get_derivatives(
    Instance *instance, const unsigned *unknowns, size_t unknown_count, const unsigned *knowns, size_t known_count,
    const double *direction, double *values
) {
    const Status status = find_any_derivatives(instance, unknowns, unknown_count, knowns, known_count, direction, values);
    return status == DONE ? check_derivatives(instance, unknowns, unknown_count, values) : status;
}
