/* Rows of results of a group of machines. */

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
