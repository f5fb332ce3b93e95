/* Derivatives of inputs and outputs by time, directional derivatives, and derivatives of the start, exact ones throughout. */

/* -- by parameters: what initialization solves is differentiated implicitly ----------------------------------------- */

typedef struct {
    double closure[ROOM(MOST_CONSTRAINTS)], rate[ROOM(MOST_CONSTRAINTS)], acceleration[ROOM(MOST_CONSTRAINTS)];
    double balance[ROOM(MOST_COORDINATES)], outputs[ROOM(MOST_OUTPUTS)], integrals[ROOM(MOST_INTEGRALS)];
    double coordinates[ROOM(MOST_COORDINATES)], velocities[ROOM(MOST_COORDINATES)], states[ROOM(MOST_STATES)];
} Variation;

static void vary(const Assembly *assembly, const Parts *parts, Variation *found) {
    assembly->variation(
        parts, found->closure, found->rate, found->acceleration, found->balance, found->outputs, found->integrals,
        found->coordinates, found->velocities, found->states
    );
}

/* Change dependent values so that a loop equation's change vanishes. */
static void follow(
    const Parts *parts, const Closure *closed, int rows, int columns, const int *dependent, const double *change,
    double *values
) {
    double *work = dense_matrix(parts, OF_WORK), *matrix = dense_matrix(parts, OF_COLUMNS);
    int orders[ROOM(SQUARES_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    double solution[ROOM(MOST_COORDINATES)];
    int count = 0;
    for (int j = 0; j < columns; j++) {
        if (dependent[j]) memcpy(matrix + rows * count++, closed->jacobian + rows * j, sizeof(double) * (size_t)rows);
    }
    if (count == 0) return;
    least_squares(rows, count, matrix, change, solution, RANK_TOLERANCE, work, orders);
    for (int j = 0, k = 0; j < columns; j++) {
        if (dependent[j]) values[j] = -solution[k++];
    }
}

/* Directions of z, z' and x at the start, from the direction of the parameters; returns the rank of the loops. */
static int vary_start(const Assembly *assembly, const Parts *parts) {
    const int n = assembly->coordinates, m = assembly->constraints;
    double coordinates[ROOM(MOST_COORDINATES)], velocities[ROOM(MOST_COORDINATES)], states[ROOM(MOST_STATES)];
    double own[ROOM(MOST_COORDINATES)], own_velocities[ROOM(MOST_COORDINATES)];
    int positions[ROOM(MOST_COORDINATES)] = {0};
    int dependent[ROOM(MOST_COORDINATES)], moving[ROOM(MOST_COORDINATES)], ranks[ROOM(MOST_COORDINATES)] = {0};
    int varied = 0;
    char reason[sizeof ((Instance *)NULL)->reason];
    Variation found;
    Closure closed = {.jacobian = dense_matrix(parts, OF_VARIED)};
    /* Which coordinates closed the loops was chosen where they first were closed, not where they are now. */
    assembly->start(parts, coordinates, velocities, states);
    find_own_start(assembly, parts, own, own_velocities);
    rank_given(n, coordinates, own, assembly->written_coordinates, positions);
    rank_given(n, velocities, own_velocities, assembly->written_velocities, ranks);
    if (close_loops(assembly, parts, own, coordinates, moving, reason, sizeof reason)) {
        memcpy(parts->coordinates, coordinates, sizeof(double) * (size_t)n);
    }
    for (int j = 0; j < n; j++) {
        dependent[j] = 0;
        parts->d_coordinates[j] = parts->d_velocities[j] = parts->d_accelerations[j] = 0.0;
    }
    for (int i = 0; i < assembly->states; i++) parts->d_states[i] = 0.0;
    vary(assembly, parts, &found);
    memcpy(parts->d_states, found.states, sizeof(double) * (size_t)assembly->states);
    const Variation start = found;
    int rank = 0;
    if (m > 0) {
        double point[ROOM(MOST_COORDINATES)];
        memcpy(point, parts->coordinates, sizeof(double) * (size_t)n);
        close_at(assembly, parts, point, &closed);
        for (int j = 0; j < n; j++) { /* a direction sets what it changes */
            if (start.velocities[j] != 0.0) ranks[j] = 2;
            if (start.coordinates[j] == 0.0) continue;
            varied |= positions[j] != 2;
            positions[j] = 2;
        }
        if (varied) choose_dependent(assembly, parts, &closed, positions, NULL, moving);
        rank = choose_dependent(assembly, parts, &closed, ranks, NULL, dependent);
    }
    for (int j = 0; j < n; j++) parts->d_coordinates[j] = rank > 0 && moving[j] ? 0.0 : start.coordinates[j];
    if (rank > 0) {
        vary(assembly, parts, &found);
        follow(parts, &closed, m, n, moving, found.closure, parts->d_coordinates);
    }
    for (int j = 0; j < n; j++) parts->d_velocities[j] = dependent[j] ? 0.0 : start.velocities[j];
    if (rank > 0) {
        vary(assembly, parts, &found);
        follow(parts, &closed, m, n, dependent, found.rate, parts->d_velocities);
    }
    return rank;
}

/* Directions of z, z' and x at the start, from the direction of the parameters. */
static int vary_placed(Instance *instance) {
#if PLACED
    const Parts *running = &instance->parts;
    Parts parts = instance->parts;
    double coordinates[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)];
    if (!assemble(instance, &whole, &parts)) return 0;
    COPY(running->start_coordinates, parts.coordinates, START_COORDINATES);
    COPY(running->start_velocities, parts.velocities, START_COORDINATES);
    vary_start(&whole, &parts);
    COPY(running->d_start_coordinates, parts.d_coordinates, START_COORDINATES);
    COPY(running->d_start_velocities, parts.d_velocities, START_COORDINATES);
    load(instance);
    placement_variation(running, coordinates, velocities);
    COPY(running->d_coordinates, coordinates, COORDINATES);
    COPY(running->d_velocities, velocities, COORDINATES);
    for (int j = 0; j < COORDINATES; j++) running->d_accelerations[j] = 0.0;
#else
    vary_start(&whole, &instance->parts);
#endif
    return 1;
}

/* Directions of the calculated parameters of a part, and of what other parts take of them. */
static int vary_balance(
    Instance *instance, const Assembly *assembly, double *d_parameters, const double *d_all_inputs, double *d_calculated
) {
    const State *state = &instance->state;
    const int n = assembly->coordinates, m = assembly->constraints, count = assembly->balances;
    Parts parts = instance->parts;
    double inputs[ROOM(MOST_INPUTS)] = {0.0}, d_inputs[ROOM(MOST_INPUTS)] = {0.0};
    double multipliers[ROOM(MOST_CONSTRAINTS)] = {0.0};
    double rest[ROOM(MOST_COORDINATES)], solution[ROOM(MOST_CONSTRAINTS + MOST_INPUTS)];
    double *matrix = dense_matrix(&instance->parts, OF_FACTORS), *work = dense_matrix(&instance->parts, OF_WORK);
    int orders[ROOM(SQUARES_ORDERS(MOST_COORDINATES, MOST_CONSTRAINTS + MOST_INPUTS))];
    Variation found;
    Closure closed = {.jacobian = dense_matrix(&instance->parts, OF_VARIED)};
    share_inputs(assembly, state->effective, inputs);
    share_inputs(assembly, d_all_inputs, d_inputs);
    parts.inputs = inputs;
    parts.d_inputs = d_inputs;
    parts.multipliers = multipliers;
    if (!assemble(instance, assembly, &parts)) return 0;
    parts.d_parameters = d_parameters + assembly->first_parameter;
    const int rank = vary_start(assembly, &parts);
    if (n - rank != count) {
        return fail(
            instance, "%s has %d degrees of freedom but %d balancing forces; derivatives of these are not known",
            assembly->name, n - rank, count
        );
    }
    /* At rest: rest + B F + Phi_z^T lambda = 0. Its change vanishes too. */
    double point[ROOM(MOST_COORDINATES)];
    memcpy(point, parts.coordinates, sizeof(double) * (size_t)n);
    for (int j = 0; j < n; j++) parts.velocities[j] = parts.accelerations[j] = parts.d_velocities[j] = 0.0;
    for (int k = 0; k < count; k++) {
        inputs[assembly->balance_inputs[k]] = state->calculated[assembly->first_calculated + k];
        d_inputs[assembly->balance_inputs[k]] = 0.0;
    }
    close_at(assembly, &parts, point, &closed);
    assembly->standing(&parts, rest, matrix + n * m);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) matrix[j + n * i] = closed.jacobian[i + m * j];
    }
    if (m > 0) least_squares(n, m, matrix, rest, multipliers, RANK_TOLERANCE, work, orders);
    for (int i = 0; i < m; i++) multipliers[i] = -multipliers[i];
    if (assembly->standing_change != NULL) {
        assembly->standing_change(&parts, found.balance);
    } else {
        vary(assembly, &parts, &found);
    }
    least_squares(n, m + count, matrix, found.balance, solution, RANK_TOLERANCE, work, orders);
    for (int k = 0; k < count; k++) d_calculated[assembly->first_calculated + k] = -solution[m + k];
    for (int k = 0; k < FEEDS; k++) {
        const int calculated = feeds[k].calculated - assembly->first_calculated;
        if (calculated < 0 || calculated >= count) continue;
        d_parameters[feeds[k].parameter] = d_calculated[feeds[k].calculated];
    }
    return 1;
}

/* The same of all parts. */
static int vary_balances(Instance *instance, double *d_parameters, const double *d_inputs, double *d_calculated) {
    for (int k = 0; k < BALANCED_PARTS; k++) {
        if (!vary_balance(instance, &balanced_parts[k], d_parameters, d_inputs, d_calculated)) return 0;
    }
    return 1;
}

#if !CHANGES

/* The same as `vary` for the system that runs, which need not be the one that is put together at the start. */
static void vary_here(const Parts *parts, Variation *found) {
    variation(
        parts, found->closure, found->rate, found->acceleration, found->balance, found->outputs, found->integrals,
        found->coordinates, found->velocities, found->states
    );
}

/* Directions of everything at the start; they stand in the arguments afterwards, those of outputs in `found`. */
static int vary_initialization(
    Instance *instance, double *d_parameters, const double *d_inputs, double *d_calculated, Variation *found
) {
    const Parts *parts = &instance->parts;
    double mass[ROOM(COORDINATES * COORDINATES)], rest[ROOM(COORDINATES)], rates[ROOM(STATES)];
    double by_inputs[ROOM(COORDINATES * INPUTS)], turned[ROOM(SADDLE)];
    if (!vary_balances(instance, d_parameters, d_inputs, d_calculated)) return 0;
    load(instance);
    COPY(parts->d_parameters, d_parameters, PARAMETERS);
    COPY(parts->d_inputs, d_inputs, INPUTS);
    for (int i = 0; i < INTEGRALS; i++) parts->d_integrals[i] = 0.0;
    if (!vary_placed(instance)) return 0;
    load(instance);
    vary_here(parts, found);
    equilibrium(parts, mass, rest, rates, by_inputs);
    for (int i = 0; i < COORDINATES; i++) turned[i] = -found->balance[i];
    for (int i = 0; i < CONSTRAINTS; i++) turned[COORDINATES + i] = -found->acceleration[i];
    step_functions.solve_saddle(parts, mass, NEAR_CHANGE, turned);
    COPY(parts->d_accelerations, turned, COORDINATES);
    COPY(parts->d_integrals, found->integrals, INTEGRALS);
    vary_here(parts, found);
    return 1;
}

#endif

/* -- by time, and along directions ---------------------------------------------------------------------------------- */

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
