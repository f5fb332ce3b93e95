/* A formulation in y = (z, w, x): w are the velocities, or canonical momenta where it is Hamiltonian. */

#if HAMILTONIAN
#define MOVING momenta
#define MOVING_RATES momentum_rates
#else
#define MOVING velocities
#define MOVING_RATES accelerations
#endif

static void motion(Instance *instance) { first_order_motion(&instance->parts); }

/* Equations that count do not contradict each other. */
static inline void close_constraints(Instance *instance) { (void)instance; }

/* Choose the loop equations that count, and where they are canonical momenta find those that fit the velocities. */
static inline int prepare(Instance *instance) {
    choose_rows(&instance->parts, instance->state.active, 1);
#if HAMILTONIAN
    initial_momenta(&instance->parts);
    COPY(instance->state.momenta, instance->parts.momenta, COORDINATES);
#endif
    return 1;
}

/* Let what follows from positions, velocities or momenta, and the loop equations that count, follow. */
static void follow(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->active, state->active, CONSTRAINTS);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    COPY(parts->states, state->states, STATES);
    COPY(parts->loop_iterates, state->loop_iterates, LOOP_ITERATES);
    motion(instance);
    restart_history(instance);
    keep(instance);
}

#if RESTARTS

/* Where impulses outweigh the momenta of the motion, go on from these alone: z' stays, and sigma is zero. */
static void restart_with_momenta(Instance *instance) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double energies[2], momenta[ROOM(COORDINATES)];
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    COPY(parts->momenta, state->momenta, COORDINATES);
    restarted_momenta(parts, energies, momenta);
    if (energies[0] <= (SOLVER == EXCHANGED ? GROWN_BETWEEN_EVENTS : GROWN) * energies[1]) return;
    COPY(state->momenta, momenta, COORDINATES);
    follow(instance);
}

#endif

#if SOLVER == IMPLICIT && ERROR > 0

/* Let momenta of another motion with the state's references start anew where those of the state have. */
static void restart_as_state(Instance *instance, const double *coordinates, const double *velocities, double *momenta) {
#if RESTARTS
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->velocities, state->velocities, COORDINATES);
    initial_momenta(parts);
    if (memcmp(parts->momenta, state->momenta, sizeof(double) * COORDINATES) != 0) return;
    COPY(parts->coordinates, coordinates, COORDINATES);
    COPY(parts->velocities, velocities, COORDINATES);
    initial_momenta(parts);
    COPY(momenta, parts->momenta, COORDINATES);
#else
    (void)instance, (void)coordinates, (void)velocities, (void)momenta;
#endif
}

#endif

/* Describe the state that a step has led to as the next one needs it: by other references or loop equations, or by
 * momenta that start anew where the impulses in them have grown. */
static void change_chart(Instance *instance) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    int anew = change_reference_quaternions(instance);
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    if (choose_rows(parts, state->active, 0)) {
        state->repartitions += 1.0;
        anew = 1;
    }
    if (anew) follow(instance);
#if RESTARTS
    restart_with_momenta(instance);
#endif
}

#if SOLVER == IMPLICIT

/* All that an iteration matrix in loops depends on. */
#define OF_POINT(EACH) \
    EACH(coordinates, COORDINATES) EACH(MOVING, COORDINATES) EACH(states, STATES) EACH(inputs, INPUTS) \
    EACH(parameters, PARAMETERS) EACH(references, REFERENCES) EACH(discrete, DISCRETE) EACH(active, CONSTRAINTS)

/* One implicit step. */
typedef struct {
    double guess[ROOM(UNKNOWNS)];
    int dependent[ROOM(COORDINATES)];
} Problem;

static const char *unknown_name(const Instance *instance, int unknown) {
    (void)instance;
    if (unknown >= 2 * COORDINATES) return state_names[unknown - 2 * COORDINATES];
    return unknown < COORDINATES ? coordinate_names[unknown] : velocity_names[unknown - COORDINATES];
}

/* Set where the step begins, and predict its end. */
static void begin(Instance *instance, Problem *problem, double step) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    memcpy(problem->dependent, state->dependent, sizeof problem->dependent);
    COPY(parts->begin, state->coordinates, COORDINATES);
    COPY(parts->begin + COORDINATES, state->MOVING, COORDINATES);
    COPY(parts->begin + 2 * COORDINATES, state->states, STATES);
    COPY(parts->begin_rates, state->velocities, COORDINATES);
    COPY(parts->begin_rates + COORDINATES, state->MOVING_RATES, COORDINATES);
    COPY(parts->begin_rates + 2 * COORDINATES, state->rates, STATES);
    for (int i = 0; i < UNKNOWNS; i++) problem->guess[i] = parts->begin[i] + step * parts->begin_rates[i];
    for (int j = 0; j < COORDINATES; j++) problem->guess[j] += 0.5 * (step * step) * state->accelerations[j];
    COPY(parts->begin_history, state->history, STEP_HISTORY);
    *parts->step = step;
}

/* Bring positions, velocities or momenta, and states to the solution. */
static int land(Instance *instance, Problem *problem, const double *unknowns) {
    const Parts *parts = &instance->parts;
    (void)problem;
    COPY(parts->coordinates, unknowns, COORDINATES);
    COPY(parts->MOVING, unknowns + COORDINATES, COORDINATES);
    COPY(parts->states, unknowns + 2 * COORDINATES, STATES);
    return 1;
}

/* y' by the rule, without f(y). */
static int evaluate(Instance *instance, Problem *problem, const double *unknowns, double *residual) {
    COPY(instance->parts.unknowns, unknowns, UNKNOWNS);
#if FACTORS > 0
    land(instance, problem, unknowns);
#else
    (void)problem;
#endif
    first_order_residual(&instance->parts, residual);
    return 1;
}

#include "all_coordinates.c"

#if FACTORS == 0
static void iteration_matrix(Instance *instance, double *matrix) { first_order_iteration_matrix(&instance->parts, matrix); }
#endif

/* Bring velocities, accelerations, multipliers and rates to the solution. */
static int finish(Instance *instance, Problem *problem) {
    (void)problem;
    motion(instance);
    return 1;
}

#else

/* For explicit and linearly implicit solvers: y = (z, w, x, integrals). */
#define SIZE (UNKNOWNS + INTEGRALS)

static void load_y(Instance *instance, double time, const double *y) {
    const Parts *parts = &instance->parts;
    COPY(parts->coordinates, y, COORDINATES);
    COPY(parts->MOVING, y + COORDINATES, COORDINATES);
    COPY(parts->states, y + 2 * COORDINATES, STATES);
    COPY(parts->references, instance->state.references, REFERENCES);
    COPY(parts->loop_iterates, instance->state.loop_iterates, LOOP_ITERATES);
    COPY(parts->active, instance->state.active, CONSTRAINTS);
    inputs_at(instance, time, parts->inputs);
}

/* y' at a time inside an interval without jumps. */
static int rates_of(Instance *instance, double time, const double *y, double *rates) {
    load_y(instance, time, y);
    first_order_rates(&instance->parts, rates);
    if (!all_finite(rates, SIZE)) return loops_hold(instance) && fail(instance, "the equations are not finite at t = %.9g s", time);
    return 1;
}

static void pack(const State *state, double *y) {
    COPY(y, state->coordinates, COORDINATES);
    COPY(y + COORDINATES, state->MOVING, COORDINATES);
    COPY(y + 2 * COORDINATES, state->states, STATES);
    COPY(y + UNKNOWNS, state->integrals, INTEGRALS);
}

/* y' of the state. */
static inline void pack_rates(const State *state, double *rates) {
    COPY(rates, state->velocities, COORDINATES);
    COPY(rates + COORDINATES, state->MOVING_RATES, COORDINATES);
    COPY(rates + 2 * COORDINATES, state->rates, STATES);
    COPY(rates + UNKNOWNS, state->integral_rates, INTEGRALS);
}

/* Take the end of a step as the state; where that cannot be, the state stays as it is. */
static int commit(Instance *instance, double time, double step, const double *y) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    (void)step;
    load_y(instance, time, y);
    motion(instance);
    integral_rates(parts, parts->integral_rates);
    if (!all_finite(parts->MOVING_RATES, COORDINATES) || !all_finite(parts->rates, STATES)
        || !all_finite(parts->velocities, COORDINATES) || !all_finite(parts->integral_rates, INTEGRALS)) {
        return loops_hold(instance) && fail(instance, "the equations are not finite at t = %.9g s", time);
    }
    if (!follow_loops(instance)) return 0;
    keep(instance);
    COPY(state->integrals, y + UNKNOWNS, INTEGRALS);
    COPY(state->integral_rates, parts->integral_rates, INTEGRALS);
    state->steps += 1.0;
    return 1;
}

#if SOLVER == ROSENBROCK || (SOLVER == EXCHANGED && KEEPS_JACOBIAN)

/* Where velocities are elements of y, these are the rates of the coordinates. */
#define CHAINED (HAMILTONIAN ? 0 : COORDINATES)

#if FACTORS > 0

/* All that derivatives depend on where a step begins. */
static int load_begin(Instance *instance, double time, const double *y) {
    load_y(instance, time, y);
    return 1;
}

#endif

#include "all_coordinates.c"

#endif

#if SOLVER == EXCHANGED

/* The point as it is, where nothing follows from it. */
static int reach(Instance *instance, double time, const double *y) { return commit(instance, time, 0.0, y); }

#if KEEPS_JACOBIAN

static int find_jacobian(Instance *instance, PointJacobian *jacobian) {
    if (!find_slope(instance, instance->state.time, jacobian->by_states)) return 0;
    insert_chained(jacobian->by_states, UNKNOWNS, CHAINED);
    return 1;
}

static int find_input_jacobian(Instance *instance, PointJacobian *jacobian) {
    for (int j = 0; j < INPUTS; j++) {
        for (int i = 0; i < INPUTS; i++) instance->parts.input_rates[i] = i == j ? 1.0 : 0.0;
        find_drift(instance, jacobian->by_inputs + SIZE * j);
    }
    return 1;
}

#endif

/* What changes with a direction of y and inputs at the state. */
static int find_change(Instance *instance, const double *d_y, const double *d_inputs, Change *change) {
    const Parts *parts = &instance->parts;
    COPY(parts->d_coordinates, d_y, COORDINATES);
    COPY(parts->d_velocities, d_y + COORDINATES, COORDINATES);
    COPY(parts->d_states, d_y + 2 * COORDINATES, STATES);
    COPY(parts->d_integrals, d_y + UNKNOWNS, INTEGRALS);
    COPY(parts->d_inputs, d_inputs, INPUTS);
    COPY(change->coordinates, d_y, COORDINATES);
#if KEEPS_JACOBIAN
    first_order_change(parts, change->outputs, change->velocities, change->accelerations);
#else
    first_order_change(parts, change->rates, change->outputs, change->velocities, change->accelerations);
#endif
    return 1;
}

#endif

#if SOLVER == EXCHANGED && CONSTRAINTS > 0

/* Whether loops are open, or opening, by more than what a solver's tolerance leaves, which stabilisation closes. */
static int opened(const double *violation, double least) {
    for (int i = 0; i < CONSTRAINTS; i++) {
        if (!(fabs(violation[i]) <= least * loop_scales[i])) return 1;
    }
    return 0;
}

/* Take away, by the shortest change of values, what Phi_z times it is; the parts hold where that is. */
static void take_away(const Parts *parts, const double *violation, double *values) {
    double *jacobian = scratch_of_landing(parts), step[ROOM(COORDINATES)];
    int orders[SQUARES_ORDERS(CONSTRAINTS, COORDINATES)];
    least_squares(CONSTRAINTS, COORDINATES, jacobian, violation, step, RANK_TOLERANCE, jacobian + OF_PHI_Z, orders);
    for (int j = 0; j < COORDINATES; j++) values[j] -= step[j];
}

/* Move positions, and velocities where these are states, onto the loops where a host has set them off: the equations would
 * take them as they are. Velocities that canonical momenta give keep loops closed; prescribed motion leads others back. */
static void land_on_loops(Instance *instance) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    double violation[CONSTRAINTS], rates[CONSTRAINTS];
    const double *jacobian = scratch_of_landing(parts);
    COPY(parts->coordinates, state->coordinates, COORDINATES);
    COPY(parts->references, state->references, REFERENCES);
    closure(parts, violation, scratch_of_landing(parts));
    const int off = opened(violation, SET_OFF);
    for (int i = 0; i < CONSTRAINTS; i++) {
        rates[i] = 0.0;
        for (int j = 0; j < COORDINATES; j++) rates[i] += jacobian[i + CONSTRAINTS * j] * state->velocities[j];
    }
    const double fastest = larger(1.0, largest_magnitude(state->velocities, COORDINATES));
    const int moving_off = !HAMILTONIAN && DRIVEN == 0 && opened(rates, SET_OFF * fastest);
    if (!off && !moving_off) return;
    for (int k = 0; k < CLOSING_ITERATIONS && opened(violation, CLOSED); k++) {
        take_away(parts, violation, parts->coordinates);
        closure(parts, violation, scratch_of_landing(parts));
    }
    COPY(state->coordinates, parts->coordinates, COORDINATES);
    for (int i = 0; i < CONSTRAINTS && !HAMILTONIAN && DRIVEN == 0; i++) {
        rates[i] = 0.0;
        for (int j = 0; j < COORDINATES; j++) rates[i] += jacobian[i + CONSTRAINTS * j] * state->velocities[j];
    }
    if (!HAMILTONIAN && DRIVEN == 0) take_away(parts, rates, state->velocities);
    follow(instance);
}

#else

static void land_on_loops(Instance *instance) { (void)instance; }

#endif

/* Describe the motion anew where it is due. */
static int describe(Instance *instance) {
    land_on_loops(instance);
    change_chart(instance);
    return 1;
}

#endif
