/* Exact derivatives of the start by parameters: what initialization solves is differentiated implicitly. */

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
