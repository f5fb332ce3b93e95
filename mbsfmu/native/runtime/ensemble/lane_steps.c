/* What machines in lanes do at the ends of steps and between them, as run_loop.c has it of one, and the rows of results. */

/* Where some coordinate moves much faster than an independent one. */
static Mask steep_lanes(const Group *group) {
    Mask steep = {0};
#if RANK > 0
    for (int k = 0; k < FREEDOM; k++) {
        const Lanes *basis = group->parts.basis + COORDINATES * k;
        for (int i = 0; i < COORDINATES; i++) {
            steep |= lanes_fabs(basis[i]) * element_scales[CONSTRAINTS * i] > group->slope_limits[k];
        }
    }
#else
    (void)group;
#endif
    return steep;
}

/* Choose other coordinates in some lanes, as at the end of the steps; returns those where rank is missing. */
static Mask choose_coordinates(Group *group, Mask steep) {
    Mask failed = {0};
    const unsigned due = bits_of(steep);
    for (int lane = 0; due && lane < LANES; lane++) {
        if (!(due >> lane & 1u)) continue;
        Instance *instance = &group->instances[lane];
        State *state = &instance->state;
        int before[ROOM(COORDINATES)];
        memcpy(before, state->dependent, sizeof before);
        get_lane(instance->parts.coordinates, group->parts.coordinates, lane, COORDINATES);
        get_lane(instance->parts.references, group->parts.references, lane, REFERENCES);
        if (!step_functions.prepare(instance)) {
            memcpy(state->dependent, before, sizeof before);
            failed[lane] = -1;
        } else if (memcmp(before, state->dependent, sizeof before) != 0) {
            state->repartitions += 1.0;
            take_choice(group, lane);
        }
    }
    return failed;
}

/* Move the reference quaternions along in lanes where an angle has become large. */
static void change_reference_lanes(Group *group, Mask made) {
#if REFERENCES > 0
    LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    Lanes found[4][COORDINATES], references[REFERENCES];
    Lanes *const moved[] = {state->coordinates, state->velocities, state->accelerations, state->momenta};
    Mask large = {0};
    for (size_t k = 0; k < sizeof turning_angles / sizeof *turning_angles; k++) {
        const int *const angles = turning_angles[k];
        const Lanes one = lanes_fabs(state->velocities[angles[0]]), two = lanes_fabs(state->velocities[angles[1]]);
        const Lanes tilt = select_lanes(one > two, one, two), in_step = splat(group->instances[0].state.step_size) * tilt;
        const Lanes first = lanes_fabs(state->coordinates[angles[0]]), second = lanes_fabs(state->coordinates[angles[1]]);
        const Lanes lost = in_step * in_step * select_lanes(first > second, first, second);
        if (SOLVER == IMPLICIT) large |= (lost > splat(LOST_BY_TURNING)) & (tilt > lanes_fabs(state->velocities[angles[2]]));
        large |= second > splat(NEAR_GIMBAL_LOCK);
    }
    large &= made;
    if (!bits_of(large)) return;
    COPY_LANES(parts->coordinates, state->coordinates, COORDINATES);
    COPY_LANES(parts->velocities, state->velocities, COORDINATES);
    COPY_LANES(parts->accelerations, state->accelerations, COORDINATES);
    COPY_LANES(parts->momenta, state->momenta, COORDINATES);
    lanes_with_present_references(parts, found[0], found[1], found[2], found[3], references);
#if ERROR > 0
    /* The error stays that of the same motion. */
    Lanes exact[4][COORDINATES], *const error = group->error;
    for (int j = 0; j < COORDINATES; j++) {
        parts->coordinates[j] = state->coordinates[j] - OF_Z(error)[j];
        parts->velocities[j] = state->velocities[j] - OF_V(error)[j];
        parts->accelerations[j] = state->accelerations[j] - OF_A(error)[j];
    }
    COPY_LANES(parts->references, state->references, REFERENCES);
    COPY_LANES(parts->new_references, references, REFERENCES);
    lanes_with_references(parts, exact[0], exact[1], exact[2], exact[3]);
    for (int j = 0; j < 3 * COORDINATES; j++) {
        const int level = j / COORDINATES, i = j % COORDINATES;
        error[j] = select_lanes(large, found[level][i] - exact[level][i], error[j]);
    }
    for (int i = 0; i < ERROR_HISTORY; i++) {
        group->error_history[i] = select_lanes(large, (Lanes){0}, group->error_history[i]);
    }
#endif
    for (int each = 0; each < 4; each++) {
        for (int j = 0; j < COORDINATES; j++) moved[each][j] = select_lanes(large, found[each][j], moved[each][j]);
    }
    for (int i = 0; i < REFERENCES; i++) {
        state->references[i] = select_lanes(large, references[i], state->references[i]);
    }
    group->has_matrix = 0;
#else
    (void)group;
    (void)made;
#endif
}

static inline void take_in_lanes(Lanes *to, const Lanes *from, int count, Mask mask) {
    for (int i = 0; i < count; i++) to[i] = select_lanes(mask, from[i], to[i]);
}

/* Take where the arguments are as the state of some lanes, with the integrals and their rates. */
static void take_arguments(Group *group, const Lanes *integrals, const Lanes *integral_rates, Mask made) {
    LaneState *state = &group->state;
    const LaneParts *parts = &group->parts;
    take_in_lanes(state->coordinates, parts->coordinates, COORDINATES, made);
    take_in_lanes(state->velocities, parts->velocities, COORDINATES, made);
    take_in_lanes(state->accelerations, parts->accelerations, COORDINATES, made);
    take_in_lanes(state->multipliers, parts->multipliers, CONSTRAINTS, made);
    take_in_lanes(state->states, parts->states, STATES, made);
    take_in_lanes(state->rates, parts->rates, STATES, made);
    take_in_lanes(state->integrals, integrals, INTEGRALS, made);
    take_in_lanes(state->integral_rates, integral_rates, INTEGRALS, made);
}

/* The machine of a lane has failed; its instance knows why. */
static void end_lane(Group *group, int lane) { group->running &= ~(1u << lane); }

/* Whether inputs change while no event happens: they follow a signal that does, or run on by a rate. */
static int has_varying_inputs(const Instance *instance) {
    int varying = 0;
    for (int i = 0; i < INPUTS; i++) varying |= rated[i];
    for (int k = 0; k < instance->signal_count; k++) {
        const Signal *signal = &instance->signals[k];
        varying |= signal->kind != SIGNAL_STEPS && !instance->state.held[signal->input];
    }
    return varying;
}

/* Make the updates and jumps that are due where a lane halts; it fails where one cannot be made. */
static void leave_lane(Group *group, int lane) {
    Instance *instance = &group->instances[lane];
    Stretch *stretch = &group->stretches[lane];
    stretch->left = 1;
    if (!leave(instance, stretch->same, stretch->last, &stretch->halt)) {
        end_lane(group, lane);
        return;
    }
    stretch->varying = has_varying_inputs(instance);
    load_lane(group, lane);
    step_functions.inputs_at(instance, instance->state.time, instance->parts.inputs);
    set_lane(group->parts.inputs, lane, instance->parts.inputs, INPUTS);
}

/* Where a stretch has come to its end: make updates and jumps that are due at a halt, and look at the rank. */
static void arrive_in_lane(Group *group, int lane) {
    Instance *instance = &group->instances[lane];
    State *state = &instance->state;
    Stretch *stretch = &group->stretches[lane];
    const double same = stretch->same;
    const int is_output = stretch->end == stretch->output;
    state->time = stretch->end;
    instance->known = NOTHING;
    step_functions.inputs_at(instance, state->time, state->effective);
    get_lane(state->coordinates, group->state.coordinates, lane, COORDINATES);
    get_lane(state->velocities, group->state.velocities, lane, COORDINATES);
    get_lane(state->references, group->state.references, lane, REFERENCES);
    follow_rank(instance);
#if ERROR > 0
    store_lane(group, lane);
    follow_error(instance);
#endif
    if (is_output) state->passed = state->time + same;
    if (!stretch->at_halt) return;
    store_lane(group, lane);
    stretch->left = 0;
    if (!sample(instance, state->time + same)) {
        end_lane(group, lane);
        return;
    }
    if (is_output) refresh(instance);
    load_lane(group, lane);
}

/* -- rows of results of a group of machines ------------------------------------------------------------------------- */

enum {
    FIRST_COORDINATE = INPUTS, FIRST_STATE = FIRST_COORDINATE + 3 * COORDINATES, FIRST_DISCRETE = FIRST_STATE + STATES,
    FIRST_INTEGRAL = FIRST_DISCRETE + DISCRETE, FIRST_OUTPUT = FIRST_INTEGRAL + INTEGRALS,
    FIRST_REACTION = FIRST_OUTPUT + OUTPUTS, FIRST_VIOLATION = FIRST_REACTION + REACTIONS,
    READINGS = FIRST_VIOLATION + VIOLATIONS
};

/* The machines of a group and what is made of them; mbsfmu/native/ensemble_library.py has the same fields. */
typedef struct Machines {
    int machines;                   /* as many as there are lanes, or fewer */
    int first;                      /* the number of the first one, for messages */
    const double *parameters;       /* of each machine, and so are all others up to `signals` */
    const double *inputs;           /* set by hand, start values before */
    const Signal *const *signals;   /* that inputs follow */
    const int *signal_counts;
    const int *held;                /* inputs that were set by hand, in all machines */
    double step_size;
    const int *chosen;              /* of each machine, whether it is to be started */
    const double *set;              /* of each machine, what inputs are set to before it goes on … */
    const int *newly;               /* … where they are, in all machines; NULL where none is */
    const double *times;            /* of the rows, in each machine … */
    int times_apart;                /* … so far behind those of the one before; 0 where all have the same */
    int first_row, count;           /* the row that machines come to next, and how many there are */
    const int *columns;             /* what is recorded: places in a row of all that can be read */
    int column_count;
    double *rows;                   /* of each machine, a row for each time */
    int *done;                      /* rows of each machine */
    double *counts;                 /* of each machine, those that COUNTS lists */
    double *alone;                  /* steps of each machine that were not made in lanes */
    double *records;                /* of each machine, of the errors of its run; nothing where they are not estimated */
    char *reasons;                  /* of each machine why it has failed, in places of REASON; empty where it has not */
    const volatile int *stop;       /* becomes true where the runs are to end */
} Machines;

/* The time of a row in a machine. */
static double time_of(const Machines *machines, int lane, int row) { return machines->times[machines->times_apart * lane + row]; }

#if REACTIONS > 0

/* Find the reactions in all lanes. */
static void find_lane_reactions(Group *group) {
#if PLAY > 0
    for (int lane = 0; lane < LANES; lane++) {
        Instance *instance = &group->instances[lane];
        store_lane(group, lane);
        find_reactions(instance);
        set_lane(group->reactions, lane, instance->reactions, REACTIONS);
    }
#else
    lanes_reactions(&group->parts, group->reactions);
#endif
}

#else

static void find_lane_reactions(Group *group) { (void)group; }

#endif

/* Where something that can be read stands in all lanes. */
static const Lanes *reading(const Group *group, int place) {
    const LaneParts *parts = &group->parts;
    if (place < FIRST_COORDINATE) return parts->inputs + place;
    if (place < FIRST_COORDINATE + COORDINATES) return parts->coordinates + (place - FIRST_COORDINATE);
    if (place < FIRST_COORDINATE + 2 * COORDINATES) return parts->velocities + (place - FIRST_COORDINATE - COORDINATES);
    if (place < FIRST_STATE) return parts->accelerations + (place - FIRST_COORDINATE - 2 * COORDINATES);
    if (place < FIRST_DISCRETE) return parts->states + (place - FIRST_STATE);
    if (place < FIRST_INTEGRAL) return parts->discrete + (place - FIRST_DISCRETE);
    if (place < FIRST_OUTPUT) return parts->integrals + (place - FIRST_INTEGRAL);
    if (place < FIRST_REACTION) return group->outputs + (place - FIRST_OUTPUT);
    if (place < FIRST_VIOLATION) return group->reactions + (place - FIRST_REACTION);
    return group->violation + (place - FIRST_VIOLATION);
}

/* Record the next row of some machines, which are there. */
static void record_lanes(Group *group, const Machines *machines, unsigned recorded) {
    const LaneParts *parts = &group->parts;
    const size_t columns = (size_t)machines->column_count, rows = (size_t)machines->count;
    int reacts = 0;
#define LOAD(name, size) COPY_LANES(parts->name, group->state.name, size);
    STATE_ARRAYS(LOAD)
#undef LOAD
    for (int lane = 0; lane < LANES; lane++) {
        set_lane(parts->inputs, lane, group->instances[lane].state.effective, INPUTS);
    }
    lanes_outputs(parts, group->outputs, group->violation);
    for (size_t column = 0; column < columns; column++) {
        reacts |= machines->columns[column] >= FIRST_REACTION && machines->columns[column] < FIRST_VIOLATION;
    }
    if (reacts) find_lane_reactions(group);
    for (size_t column = 0; column < columns; column++) {
        const Lanes *values = reading(group, machines->columns[column]);
        for (int lane = 0; lane < machines->machines; lane++) {
            const size_t row = rows * (size_t)lane + (size_t)group->stretches[lane].row;
            if (recorded >> lane & 1u) machines->rows[columns * row + column] = (*values)[lane];
        }
    }
    for (int lane = 0; lane < machines->machines; lane++) {
        if (recorded >> lane & 1u) machines->done[lane] = ++group->stretches[lane].row;
    }
}
