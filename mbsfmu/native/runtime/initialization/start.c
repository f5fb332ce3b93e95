/* The consistent start of a run. */

/* Whether instants can be told apart at a time. */
static int can_sample(Instance *instance, double time) {
    const double least = RESOLVED_STEP * resolution(time, time);
    if (SHORTEST_SAMPLE_TIME >= least) return 1;
    return fail(
        instance,
        "the sample time of %g s is lost in the resolution of time at t = %g s; it must be at least %.3g s there",
        SHORTEST_SAMPLE_TIME, time, least
    );
}

#if DISCRETE > 0

/* The discrete states before their first update. */
static void start_discrete(Instance *instance) {
    COPY(instance->parts.parameters, instance->state.parameters, PARAMETERS);
    initial_discrete(&instance->parts, instance->state.discrete);
}

#else

static void start_discrete(Instance *instance) { (void)instance; }

#endif

static void start_at(State *state, double time) {
    state->time = state->slope_time = time;
    const double same = same_time(state, DBL_MAX, time, time);
    state->passed = state->due = time + same;
    state->sampled = time - same;
#if CLOCKS
    state->clock_start = time;
#endif
}

/* Start values of the model as it was made, which what was set differs from. */
static void find_own_start(const Assembly *assembly, const Parts *parts, double *coordinates, double *velocities) {
    double states[ROOM(MOST_STATES)];
    Parts own = *parts;
    own.parameters = (double *)parameter_starts + assembly->first_parameter; /* only read */
    assembly->start(&own, coordinates, velocities, states);
}

/* Put one system together at the parameters of the state; what it finds stands in the arguments of the functions. */
static int assemble(Instance *instance, const Assembly *assembly, Parts *parts) {
    double coordinates[ROOM(MOST_COORDINATES)], velocities[ROOM(MOST_COORDINATES)], states[ROOM(MOST_STATES)];
    double own[ROOM(MOST_COORDINATES)], own_velocities[ROOM(MOST_COORDINATES)];
    int moving[ROOM(MOST_COORDINATES)];
    parts->parameters = instance->state.parameters + assembly->first_parameter;
    parts->references = instance->unturned;
    assembly->start(parts, coordinates, velocities, states);
    find_own_start(assembly, parts, own, own_velocities);
    if (!close_loops(assembly, parts, own, coordinates, moving, instance->reason, sizeof instance->reason)) return 0;
    close_rates(assembly, parts, own_velocities, coordinates, velocities);
    COPY(parts->coordinates, coordinates, assembly->coordinates);
    COPY(parts->velocities, velocities, assembly->coordinates);
    COPY(parts->states, states, assembly->states);
    return 1;
}

/* A part's share of the inputs, or of directions of theirs; zero for those that a connection drives. */
static void share_inputs(const Assembly *assembly, const double *inputs, double *own) {
    for (int i = 0; i < assembly->inputs; i++) {
        own[i] = assembly->whole_inputs[i] < 0 ? 0.0 : inputs[assembly->whole_inputs[i]];
    }
}

/* The motion that a part begins where it starts, as its actuators and inputs cannot hold it. */
typedef struct {
    double acceleration; /* the largest; 0 where it stays at rest */
    int first;           /* its index */
    int alone;           /* whether all other inputs are zero */
} Unheld;

/* Calculated parameters of a part, and what other parts take of them. */
static int balance_part(Instance *instance, const Assembly *assembly, Unheld *unheld) {
    State *state = &instance->state;
    Parts parts = instance->parts;
    double inputs[ROOM(MOST_INPUTS)], present[ROOM(INPUTS)];
    step_functions.inputs_at(instance, state->time, present);
    share_inputs(assembly, present, inputs);
    parts.inputs = inputs;
    if (!assemble(instance, assembly, &parts)) return 0;
    unheld->first = 0;
    unheld->acceleration = balance(assembly, &parts, state->calculated + assembly->first_calculated, &unheld->first);
    unheld->alone = !(largest_magnitude(inputs, assembly->inputs) > 0.0);
    for (int k = 0; k < FEEDS; k++) {
        const int calculated = feeds[k].calculated - assembly->first_calculated;
        if (calculated < 0 || calculated >= assembly->balances) continue;
        state->parameters[feeds[k].parameter] = state->calculated[feeds[k].calculated];
    }
    return 1;
}

/* Warn of a part that does not stay at rest where it starts, unless what connections carry in the whole holds it. */
static void warn_unbalanced(Instance *instance, const Assembly *assembly, const Unheld *unheld) {
    const State *state = &instance->state;
    const double motion = largest_magnitude(state->accelerations, COORDINATES);
    if (largest_magnitude(state->velocities, COORDINATES) == 0.0 && motion <= AT_REST * fabs(unheld->acceleration)) return;
    report(
        instance, DONE_WITH_WARNING, "%s: actuators %s cannot keep it in static equilibrium at the start; %s would be %.3g %s",
        assembly->name, unheld->alone ? "alone" : "and inputs as they are given",
        assembly->acceleration_names[unheld->first], unheld->acceleration, assembly->acceleration_units[unheld->first]
    );
}

static const Variable *variable_of(int kind, int index) {
    int k = 0;
    while ((int)variables[k].kind != kind || variables[k].index != index) k++;
    return &variables[k];
}

/* The unit of a parameter; none of a ratio. */
static const char *unit_of_parameter(int index) {
    const char *unit = variable_of(PARAMETER, index)->unit;
    return strcmp(unit, "1") ? unit : "";
}

/* No rate may have a value beside the signal that it follows from; as mbsfmu/simulation/input_values.py. */
static int check_rates(Instance *instance) {
    const int *held = instance->state.held;
    for (int k = 0; k < instance->signal_count; k++) {
        const int i = instance->signals[k].input;
        if (!rated_inputs[i] || held[i] || !held[i + 1]) continue;
        return fail(
            instance, "'%s' has a value of its own, but is the rate of '%s', which follows a signal; give both a value, or "
            "neither", variable_of(INPUT, i + 1)->name, variable_of(INPUT, i)->name
        );
    }
    return 1;
}

static int check_orderings(Instance *instance) {
    for (int k = 0; k < ORDERINGS; k++) {
        const double smaller = instance->state.parameters[orderings[k].smaller];
        const double greater = instance->state.parameters[orderings[k].greater];
        if (greater > smaller) continue;
        const char *unit = unit_of_parameter(orderings[k].greater);
        return fail(
            instance, "%s is %g%s%s; it must be greater than %s, %g", parameter_names[orderings[k].greater], greater,
            *unit ? " " : "", unit, parameter_names[orderings[k].smaller], smaller
        );
    }
    return 1;
}

/* Whether a symmetric matrix, with a shift added to its diagonal, has positive pivots only. */
static int positive_definite(const double *matrix, double shift) {
    const double xy = matrix[3], xz = matrix[4], first = matrix[0] + shift;
    if (!(first > 0.0)) return 0;
    const double second = matrix[1] + shift - xy / first * xy, coupled = matrix[5] - xy / first * xz;
    if (!(second > 0.0)) return 0;
    return matrix[2] + shift - xz / first * xz - coupled / second * coupled > 0.0;
}

/* What holds of the inertia tensors of all bodies, but not of this one, Jxx, Jyy, Jzz, Jxy, Jxz, Jyz; NULL for one that
 * a body can have: as `missing_in` of mbsfmu/model/body.py. */
static const char *missing_in(const double *tensor, int rod) {
    const double trace = tensor[0] + tensor[1] + tensor[2];
    double moments[6];
    for (int k = 0; k < 6; k++) moments[k] = k < 3 ? 0.5 * trace - tensor[k] : -tensor[k];
    if (!positive_definite(moments, TENSOR_ROUND_OFF * trace)) return ALLOWED;
    return rod || positive_definite(tensor, -NO_INERTIA * trace) ? NULL : REGULAR;
}

static int check_tensors(Instance *instance) {
    double values[ROOM(6 * TENSORS)];
    Parts parts = instance->parts;
    parts.parameters = instance->state.parameters;
    inertia_tensors(&parts, values);
    for (int k = 0; k < TENSORS; k++) {
        const double *tensor = values + 6 * k;
        const char *missing = missing_in(tensor, tensors[k].rod);
        if (!missing) continue;
        return fail(
            instance,
            "the moments of inertia of body '%s' are (%g, %g, %g), the products of inertia (%g, %g, %g) kg.m2; %s",
            tensors[k].body, tensor[0], tensor[1], tensor[2], tensor[3], tensor[4], tensor[5], missing
        );
    }
    return 1;
}

/* What parameters must be together. */
static int check_parameters(Instance *instance) { return check_orderings(instance) && check_tensors(instance); }

/* What is limited at the start must lie between its limits; the parts hold the start. */
static int check_limits(Instance *instance) {
    double limits[ROOM(3 * LIMITED)];
    start_limits(&instance->parts, limits);
    for (int k = 0; k < LIMITED; k++) {
        const double value = limits[3 * k], low = limits[3 * k + 1], high = limits[3 * k + 2];
        const char *name = limited_names[k], *unit = limited_units[k];
        if (low < value && value <= high) continue;
        if (high >= DBL_MAX) return fail(instance, "%s starts at %.6g %s; it must be above %g", name, value, unit, low);
        return fail(instance, "%s starts at %.6g %s; it must be between %g and %g", name, value, unit, low, high);
    }
    return 1;
}

/* Warn where what was given changes by more than it may: the one that does so most, the loop equation that is violated
   most, and how many others change. */
static void warn_changed(
    Instance *instance, const StartVariable *described, const double *given, const double *own, const int *written,
    const double *found, const double *bounds, const char *why, const double *violation
) {
    double most = 1.0;
    int changed = 0, open = 0;
    int ranks[ROOM(MOST_COORDINATES)] = {0}, least = 1, worst = -1;
    rank_given(START_COORDINATES, given, own, written, ranks);
    for (int j = 0; j < START_COORDINATES; j++) {
        if (ranks[j] > least) least = ranks[j];
    }
    for (int j = 0; j < START_COORDINATES; j++) {
        const double change = ranks[j] < least || bounds[j] == 0.0 ? 0.0 : fabs(found[j] - given[j]) / bounds[j];
        changed += change > 1.0;
        if (change > most) {
            most = change;
            worst = j;
        }
    }
    if (worst < 0) return;
    for (int i = 0; i < whole.constraints; i++) {
        if (fabs(violation[i]) > fabs(violation[open])) open = i;
    }
    char others[64] = "";
    if (changed > 1) snprintf(others, sizeof others, "; %d more start values are changed too", changed - 1);
    report(
        instance, DONE_WITH_WARNING, "%s: %s starts at %.6g instead of %.6g %s: %s at joint %s%s", whole.name,
        described[worst].name, found[worst], given[worst], described[worst].unit, why, whole.constraint_names[open], others
    );
}

/* Warn where the start differs from what was set; where nothing was, from what the model has. */
static void warn_changed_start(Instance *instance, const Parts *parts) {
    double given[ROOM(MOST_COORDINATES)], velocities[ROOM(MOST_COORDINATES)], states[ROOM(MOST_STATES)];
    double bounds[ROOM(START_COORDINATES)], own[ROOM(MOST_COORDINATES)], own_velocities[ROOM(MOST_COORDINATES)];
    double found[ROOM(MOST_COORDINATES)];
    const int n = whole.coordinates, m = whole.constraints;
    Closure closure = {.jacobian = dense_matrix(parts, OF_CLOSURE)};
    if (!m) return;
    whole.start(parts, given, velocities, states);
    find_own_start(&whole, parts, own, own_velocities);
    memcpy(found, parts->coordinates, sizeof(double) * (size_t)n);
    close_at(&whole, parts, given, &closure);
    memcpy(parts->coordinates, found, sizeof(double) * (size_t)n);
    warn_changed(
        instance, start_coordinates_described, given, own, whole.written_coordinates, parts->coordinates, start_bounds,
        "the start values do not close the loops, least of all", closure.violation
    );
    for (int i = 0; i < m; i++) {
        closure.violation[i] = closure.drifts[i];
        for (int j = 0; j < n; j++) closure.violation[i] += closure.jacobian[m * j + i] * velocities[j];
    }
    for (int j = 0; j < START_COORDINATES; j++) {
        bounds[j] = larger(CHANGED * largest_magnitude(velocities, START_COORDINATES), NO_VELOCITY);
    }
    warn_changed(
        instance, start_velocities_described, velocities, own_velocities, whole.written_velocities, parts->velocities,
        bounds, "the start velocities contradict the loops, most of all", closure.violation
    );
}

/* Find the consistent start from parameters and inputs. */
static int initialize(Instance *instance) {
    State *state = &instance->state;
    Parts parts = instance->parts;
    Unheld unheld[ROOM(BALANCED_PARTS)];
    start_at(state, state->time);
    step_functions.inputs_at(instance, state->time, state->effective);
    COPY(parts.inputs, state->effective, INPUTS);
    if (!can_sample(instance, state->time) || !check_rates(instance) || !check_parameters(instance)) return 0;
    for (int k = 0; k < BALANCED_PARTS; k++) {
        if (!balance_part(instance, &balanced_parts[k], unheld + k)) return 0;
    }
    if (!assemble(instance, &whole, &parts)) return 0;
    warn_changed_start(instance, &parts);
    COPY(state->states, parts.states, STATES);
#if PLACED
    COPY(parts.start_coordinates, parts.coordinates, START_COORDINATES);
    COPY(parts.start_velocities, parts.velocities, START_COORDINATES);
    COPY(instance->parts.parameters, state->parameters, PARAMETERS);
    start_references(&instance->parts);
    placement(&instance->parts);
    COPY(state->references, instance->parts.references, REFERENCES);
#else
    COPY(state->references, instance->unturned, REFERENCES);
#endif
    COPY(state->coordinates, parts.coordinates, COORDINATES);
    COPY(state->velocities, parts.velocities, COORDINATES);
    for (int i = 0; i < COORDINATES; i++) state->accelerations[i] = 0.0;
    step_functions.forget_steps(state);
    memset(state->unconverged, 0, sizeof state->unconverged);
    memset(state->error, 0, sizeof state->error);
    memset(state->error_history, 0, sizeof state->error_history);
    memset(state->error_record, 0, sizeof state->error_record);
    for (int i = 0; i < CONSTRAINTS; i++) {
        state->multipliers[i] = 0.0;
        state->active[i] = 1.0;
    }
    COPY(state->loop_iterates, loop_iterate_starts, LOOP_ITERATES);
    start_discrete(instance);
    step_functions.inputs_at(instance, state->time, state->effective);
    load(instance);
    if (!check_limits(instance)) return 0;
    initial_integrals(&instance->parts, state->integrals);
    if (step_functions.change_references(instance)) load(instance);
    if (!step_functions.prepare(instance)) return 0;
    make_consistent(instance);
    if (!all_finite(state->accelerations, COORDINATES) || !all_finite(state->rates, STATES)) {
        return step_functions.follow_loops(instance) ? fail(instance, "the start is not finite; check the parameters") : 0;
    }
    if (!step_functions.follow_loops(instance)) return 0;
    if (!sample(instance, state->passed)) return 0;
    for (int k = 0; k < BALANCED_PARTS; k++) {
        if (unheld[k].acceleration != 0.0) warn_unbalanced(instance, &balanced_parts[k], unheld + k);
    }
    state->steps = state->newton_total = state->newton_max = 0.0;
    state->failures = state->retries = state->evaluations = state->repartitions = state->embedded_distance = 0.0;
    memset(state->iterations, 0, sizeof state->iterations);
    state->initialized = 1;
    instance->known = NOTHING;
    instance->watch.warned = instance->watch.follows = 0;
    follow_rank(instance);
    begin_energy(instance);
    return 1;
}
