/* Absolute coordinates: augmented Lagrangian and mass-orthogonal projections [Malczyk2012]. Every iteration lets divide
 * and conquer find the motion that takes a violation away, with the same matrices at all levels. */

#if SOLVER == IMPLICIT

#if FACTORS > 0

/* All that an iteration matrix in loops depends on. */
#define OF_POINT(EACH) \
    EACH(coordinates, COORDINATES) EACH(velocities, COORDINATES) EACH(accelerations, COORDINATES) EACH(states, STATES) \
    EACH(multipliers, CONSTRAINTS) EACH(integrals, INTEGRALS) EACH(inputs, INPUTS) EACH(parameters, PARAMETERS) \
    EACH(references, REFERENCES) EACH(discrete, DISCRETE)

#else

/* The factor follows from the masses where the iteration matrix is made. */
static void set_penalty(const Parts *parts) { step_penalty(parts); }

#endif

#include "augmented.c"

#endif

/* Choose the constraints that count, where stages are not moved onto these. */
static inline int prepare(Instance *instance) {
#if SOLVER == ROSENBROCK && STAGED
    COPY(instance->state.active, staged_rows, CONSTRAINTS);
#elif SOLVER == ROSENBROCK
    choose_rows(&instance->parts, instance->state.active, 1);
#else
    (void)instance;
#endif
    return 1;
}

static const double correction_tolerances[LEVELS] = CORRECTION_TOLERANCES;
static void (*const violations[LEVELS])(const Parts *) = {
    position_violation, velocity_violation, acceleration_violation,
};

/* Whether constraints contradict each other by no more than round-off, so that an iteration has an end. */
#define CONVERGES (PROJECTIONS || RANK == CONSTRAINTS)

#if CONVERGES && CONSTRAINTS > 0

static double product(const double *one, const double *other, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += one[i] * other[i];
    return sum;
}

/* Write Phi_q d of a motion d. */
static void opening_of(const Parts *parts, const double *motion, double *kept, double *opening) {
    COPY(kept, parts->accelerations, COORDINATES);
    COPY(kept + COORDINATES, parts->turning, CONSTRAINTS);
    COPY(parts->accelerations, motion, COORDINATES);
    for (int i = 0; i < CONSTRAINTS; i++) parts->turning[i] = 0.0;
    acceleration_violation(parts);
    COPY(parts->accelerations, kept, COORDINATES);
    COPY(parts->turning, kept + COORDINATES, CONSTRAINTS);
    COPY(opening, parts->violation, CONSTRAINTS);
}

/* Refuse accelerations whose multipliers still change. */
static int check_change(Instance *instance, int level, const double *change, const double *found) {
    const double *before = instance->parts.multipliers;
    double largest = 0.0;
    int worst = 0;
    if (level != LEVELS - 1) return 1;
    for (int i = 0; i < CONSTRAINTS; i++) {
        largest = larger(largest, fabs(before[i] + found[i]));
        if (fabs(change[i]) > fabs(change[worst])) worst = i;
    }
    if (!(fabs(change[worst]) > UNRESOLVED_SHARE * largest)) return 1;
    return fail(
        instance,
        "the reactions do not converge: after %d iterations that at joint %s still changes by %.3g of %.3g N or N m; "
        "take another formulation", MOST_GRADIENTS, loop_names[worst], fabs(change[worst]), largest
    );
}

/* Replace an increment and its multipliers by all that are to come, which conjugate gradients find; mbsfmu/formulations/
 * projection.py says how. Adds up how many it takes; returns 0 with a reason. */
static int find_to_come(Instance *instance, int level, double *moved, double *pushed, int *gradients) {
    const Parts *parts = &instance->parts;
    double *motion = scratch_of_gradients(parts), *along = motion + COORDINATES, *answer = along + COORDINATES;
    double *kept = answer + COORDINATES, *found = kept + SADDLE, *force = found + CONSTRAINTS;
    double *opens = force + CONSTRAINTS, *opening = opens + CONSTRAINTS, *answering = opening + CONSTRAINTS;
    double *change = answering + CONSTRAINTS, reached = 0.0;
    int taken = 0, ended = 0;
    opening_of(parts, moved, kept, opening);
    for (int j = 0; j < COORDINATES; j++) motion[j] = 0.0;
    for (int i = 0; i < CONSTRAINTS; i++) found[i] = change[i] = 0.0;
    COPY(along, moved, COORDINATES);
    COPY(force, pushed, CONSTRAINTS);
    COPY(opens, opening, CONSTRAINTS);
    double energy = -product(pushed, opening, CONSTRAINTS);
    while (taken < MOST_GRADIENTS && energy > 0.0) {
        COPY(parts->violation, opens, CONSTRAINTS);
        correction(parts, answer, answering);
        const double firmness = product(opens, answering, CONSTRAINTS), own = -product(force, opens, CONSTRAINTS);
        if ((ended = !(firmness > SINGULAR_SHARE * own))) break;
        taken++;
        const double share = energy / firmness, added = share * share * own;
        for (int j = 0; j < COORDINATES; j++) motion[j] += share * along[j];
        for (int i = 0; i < CONSTRAINTS; i++) {
            change[i] = share * force[i];
            found[i] += change[i];
        }
        reached += added;
        if ((ended = added <= NEGLIGIBLE_SHARE * NEGLIGIBLE_SHARE * reached)) break;
        for (int j = 0; j < COORDINATES; j++) moved[j] += share * answer[j];
        for (int i = 0; i < CONSTRAINTS; i++) pushed[i] += share * answering[i];
        opening_of(parts, moved, kept, opening);
        const double before = energy;
        energy = -product(pushed, opening, CONSTRAINTS);
        for (int j = 0; j < COORDINATES; j++) along[j] = moved[j] + energy / before * along[j];
        for (int i = 0; i < CONSTRAINTS; i++) {
            force[i] = pushed[i] + energy / before * force[i];
            opens[i] = opening[i] + energy / before * opens[i];
        }
    }
    COPY(moved, motion, COORDINATES);
    COPY(pushed, found, CONSTRAINTS);
    *gradients += taken;
    return ended || taken < MOST_GRADIENTS || check_change(instance, level, change, found);
}

#endif

/* Iterate at one level until increments are negligible; multipliers, which accelerations have, are added up. Returns how
 * often, or 0 with a reason. What is done inside a step of an explicit method is less exact and not counted. */
static int iterate(Instance *instance, int level, int inside, double *values, double *multipliers) {
    const Parts *parts = &instance->parts;
    double increments[ROOM(COORDINATES)], pushes[ROOM(CONSTRAINTS)], size = HUGE_VAL, before = HUGE_VAL, limit = 0.0;
    double *const count = instance->state.iterations[level];
    const double tolerance = inside ? INSIDE : correction_tolerances[level];
    int iteration = 0, gradients = 0;
    if (CONSTRAINTS == 0) return 1;
    if (multipliers) { /* the first iteration is that of the loads */
        iteration = 1;
        size = magnitude(values, COORDINATES);
        limit = tolerance * larger(1.0, largest_magnitude(values, COORDINATES));
    }
    while (!(size <= limit) && iteration < CORRECTION_ITERATIONS) {
        if ((multipliers || gradients) && size > CONTRADICTION * before) break;
        before = size;
        violations[level](parts);
        correction(parts, increments, pushes);
        iteration++;
        size = magnitude(increments, COORDINATES);
        limit = 1.0;
        for (int j = 0; j < COORDINATES; j++) limit = larger(limit, fabs(values[j] + increments[j]));
        limit *= tolerance;
#if CONVERGES && CONSTRAINTS > 0
        if (limit < size && CORRECTION_SLOW * before < size
            && !find_to_come(instance, level, increments, pushes, &gradients)) {
            return 0;
        }
#endif
        for (int j = 0; j < COORDINATES; j++) values[j] += increments[j];
        if (multipliers) {
            for (int i = 0; i < CONSTRAINTS; i++) multipliers[i] += pushes[i];
        }
    }
    if (!all_finite(&size, 1)) {
        static const char *const names[LEVELS] = {"position", "velocity", "acceleration"};
        return fail(instance, "the iteration for the constraints at %s level is not finite", names[level]);
    }
    if (inside) return iteration;
    count[0] += 1.0;
    count[1] += iteration + gradients;
    count[2] = larger(count[2], iteration + gradients);
    return iteration;
}

static int accelerate_with(Instance *instance, int inside) {
    const Parts *parts = &instance->parts;
    free_motion(parts);
    return iterate(instance, 2, inside, parts->accelerations, parts->multipliers);
}

#if FED_THROUGH > 0

/* Find what connections carry that depends on accelerations, which are linear in it: w = A w + b. */
static int feel(Instance *instance) {
    const Parts *parts = &instance->parts;
    double without[FED_THROUGH], with[FED_THROUGH], matrix[FED_THROUGH * FED_THROUGH];
    int pivots[FED_THROUGH];
    for (int j = -1; j < FED_THROUGH; j++) {
        for (int i = 0; i < FED_THROUGH; i++) parts->fed_through[i] = i == j ? 1.0 : 0.0;
        if (!accelerate_with(instance, 1)) return 0;
        feed_through_values(parts, j < 0 ? without : with);
        for (int i = 0; j >= 0 && i < FED_THROUGH; i++) matrix[i + FED_THROUGH * j] = (i == j ? 1.0 : 0.0) - (with[i] - without[i]);
    }
    if (!factorize(FED_THROUGH, matrix, pivots)) return fail(instance, "accelerations that act back on forces have no bounds");
    COPY(parts->fed_through, without, FED_THROUGH);
    substitute(FED_THROUGH, matrix, pivots, parts->fed_through);
    return 1;
}

#endif

/* Accelerations and multipliers with the present matrices. */
static int accelerate(Instance *instance) {
#if FED_THROUGH > 0
    if (!feel(instance)) return 0;
#endif
    return accelerate_with(instance, 0);
}

/* Let all constraints count: on these, redundant ones share what they transmit. */
static void use_all(const Parts *parts) {
    for (int i = 0; i < CONSTRAINTS; i++) parts->active[i] = 1.0;
}

static void motion(Instance *instance) {
    const Parts *parts = &instance->parts;
    double rates[ROOM(STATES + INTEGRALS)];
    use_all(parts);
    factorize_constraints(parts);
    accelerate(instance);
    flow_rates(parts, rates);
    COPY(parts->rates, rates, STATES);
}

/* Describe the state that a step has led to as the next one needs it: by other references, with other constraints chosen. */
static void change_chart(Instance *instance) {
    change_reference_quaternions(instance);
#if SOLVER == ROSENBROCK
    COPY(instance->parts.coordinates, instance->state.coordinates, COORDINATES);
    COPY(instance->parts.references, instance->state.references, REFERENCES);
    instance->state.repartitions += choose_rows(&instance->parts, instance->state.active, 0);
#endif
}

/* Move positions onto the constraints, and set the matrices of where they are then: redundant constraints contradict each
 * other beside the constraints. */
static int place(Instance *instance, int inside) {
    const Parts *parts = &instance->parts;
    factorize_constraints(parts);
    if (!PROJECTIONS || CONSTRAINTS == 0) return 1;
    const int iterations = iterate(instance, 0, inside, parts->coordinates, NULL);
    if (!iterations) return 0;
    if (inside || iterations > 1) factorize_constraints(parts); /* what one moves at the end of a step is round-off */
    return 1;
}

/* Bring the arguments' positions and velocities onto the constraints. */
static int project(Instance *instance) {
    use_all(&instance->parts);
    return place(instance, 0) && (!PROJECTIONS || iterate(instance, 1, 0, instance->parts.velocities, NULL));
}

static inline void close_constraints(Instance *instance) { (void)project(instance); /* where it fails, nothing is finite */ }

/* The same, and find accelerations there. */
static int project_onto_constraints(Instance *instance) { return project(instance) && accelerate(instance); }

#if SOLVER == IMPLICIT

static int finish(Instance *instance, Problem *problem) {
    (void)problem;
    return project_onto_constraints(instance);
}

#else

/* For explicit solvers: y = (q, q', x, integrals). */
#define SIZE (2 * COORDINATES + STATES + INTEGRALS)

static void load_y(Instance *instance, double time, const double *y) {
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, y, COORDINATES);
    COPY(parts->velocities, y + COORDINATES, COORDINATES);
    COPY(parts->states, y + 2 * COORDINATES, STATES);
    COPY(parts->integrals, y + 2 * COORDINATES + STATES, INTEGRALS);
    COPY(parts->references, instance->state.references, REFERENCES);
    COPY(parts->loop_iterates, instance->state.loop_iterates, LOOP_ITERATES);
    inputs_at(instance, time, parts->inputs);
}

/* Bring a stage onto the constraints; where it has to stay beside them, let those count that have been chosen. */
static int place_stage(Instance *instance) {
#if SOLVER == ROSENBROCK
    COPY(instance->parts.active, instance->state.active, CONSTRAINTS);
    factorize_constraints(&instance->parts);
    return 1;
#else
    use_all(&instance->parts);
    return place(instance, 1);
#endif
}

/* y' at a time inside an interval without jumps. */
static int rates_of(Instance *instance, double time, const double *y, double *rates) {
    const Parts *parts = &instance->parts;
    load_y(instance, time, y);
    if (!place_stage(instance) || !accelerate(instance)) return 0;
    COPY(rates, y + COORDINATES, COORDINATES);
    COPY(rates + COORDINATES, parts->accelerations, COORDINATES);
    flow_rates(parts, rates + 2 * COORDINATES);
    if (!all_finite(rates, SIZE)) return loops_hold(instance) && fail(instance, "the equations are not finite at t = %.9g s", time);
    return 1;
}

static void pack(const State *state, double *y) {
    COPY(y, state->coordinates, COORDINATES);
    COPY(y + COORDINATES, state->velocities, COORDINATES);
    COPY(y + 2 * COORDINATES, state->states, STATES);
    COPY(y + 2 * COORDINATES + STATES, state->integrals, INTEGRALS);
}

/* y' of the state. */
static inline void pack_rates(const State *state, double *rates) {
    COPY(rates, state->velocities, COORDINATES);
    COPY(rates + COORDINATES, state->accelerations, COORDINATES);
    COPY(rates + 2 * COORDINATES, state->rates, STATES);
    COPY(rates + 2 * COORDINATES + STATES, state->integral_rates, INTEGRALS);
}

/* Take the end of a step, moved onto the constraints, as the state; where that cannot be, the state stays as it is. */
static int commit(Instance *instance, double time, double step, const double *y) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double rates[ROOM(STATES + INTEGRALS)];
    (void)step;
    load_y(instance, time, y);
    if (!project_onto_constraints(instance) || !follow_loops(instance)) return 0;
    flow_rates(parts, rates);
    COPY(parts->rates, rates, STATES);
    keep(instance);
    COPY(state->integrals, parts->integrals, INTEGRALS);
    COPY(state->integral_rates, rates + STATES, INTEGRALS);
    state->steps += 1.0;
    return 1;
}

#if SOLVER == ROSENBROCK

/* All that derivatives depend on where a step begins: accelerations and multipliers of the chosen constraints, too. */
static inline int load_begin(Instance *instance, double time, const double *y) {
    load_y(instance, time, y);
    return place_stage(instance) && accelerate(instance);
}

#define CHAINED COORDINATES /* there are none where derivatives are a matrix */

#include "all_coordinates.c"

#endif

#if SOLVER == EXCHANGED

/* The point moved onto the constraints. */
static int reach(Instance *instance, double time, const double *y) { return commit(instance, time, 0.0, y); }

#if CHANGES_KNOWN

/* What changes with a direction of y and inputs at the state, which is on the constraints. */
static int find_change(Instance *instance, const double *d_y, const double *d_inputs, Change *change) {
    const Parts *parts = &instance->parts;
    use_all(parts);
    COPY(parts->d_coordinates, d_y, COORDINATES);
    COPY(parts->d_velocities, d_y + COORDINATES, COORDINATES);
    COPY(parts->d_states, d_y + 2 * COORDINATES, STATES);
    COPY(parts->d_integrals, d_y + 2 * COORDINATES + STATES, INTEGRALS);
    COPY(parts->d_inputs, d_inputs, INPUTS);
    projected_change(parts, change->rates, change->outputs, change->coordinates, change->velocities, change->accelerations);
    return 1;
}

#endif

#endif

/* Describe the motion anew where it is due. */
static int describe(Instance *instance) {
    change_chart(instance);
    return 1;
}

#endif
