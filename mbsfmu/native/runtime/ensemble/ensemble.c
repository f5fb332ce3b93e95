/* Runs of many machines of one model, which differ in parameters, start values and inputs: a group at a time, whose machines
 * are in the lanes of vectors. Starts, events, updates and steps that fail are made by the code for one machine. */
#include "model_rest.c"

#include "identity.h"

#include "steps.h"

#include "linear.c"
#include "orthogonal.c"
#include "assembly.c"
#include "consistent.c"
#include "sampling.c"
#include "readings.c"
#include "change_points.c"
#include "energy_watch.c"
#include "run_loop.c"
#include "start.c"

#include "lanes.h"
#include "lane_linear.c"
#include "model_lanes.c"
#include "lane_group.h"
#include "lane_closure.c"
#include "lane_error.c"
#include "lane_steps.c"
#if SOLVER == ROSENBROCK
#include "lane_adaptive_steps.c"
#else
#include "lane_implicit.c"
#endif

enum { REASON = sizeof((Instance *)NULL)->reason };

/* How many numbers COUNTS lists. */
enum {
#define SUM(name, size) +(size)
    COUNTED = 0 COUNTS(SUM)
#undef SUM
};

static void write_counts(const State *state, double *numbers) {
#define WRITE(name, size) memcpy(numbers, &state->name, sizeof(double) * (size_t)(size)), numbers += (size);
    COUNTS(WRITE)
#undef WRITE
}

EXPORT const char *mbsfmu_identity(void) { return IDENTITY; }

/* Sizes that the caller must know too, written to at most `room` places; returns how many there are. */
EXPORT int mbsfmu_sizes(int *sizes, int room) {
    const int all[] = {LANES, PARAMETERS, INPUTS, READINGS, COUNTED, ERROR_RECORD, REASON};
    const int count = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < count && k < room; k++) sizes[k] = all[k];
    return count;
}

/* A group, whose machines tell the logger what they have to say, with their number as environment. */
EXPORT Group *mbsfmu_create_group(Logger logger) {
    char *const allocated = calloc(1, sizeof(Group) + sizeof(Lanes));
    if (!allocated) return NULL;
    Group *group = (Group *)(allocated + (sizeof(Lanes) - (uintptr_t)allocated % sizeof(Lanes)));
    group->allocated = allocated;
    group->instances = calloc(LANES, sizeof(Instance));
    if (!group->instances) {
        free(allocated);
        return NULL;
    }
    connect_lanes(group);
    for (int lane = 0; lane < LANES; lane++) {
        connect_memory(&group->instances[lane]);
        group->instances[lane].logger = logger;
    }
    return group;
}

EXPORT void mbsfmu_destroy_group(Group *group) {
    free(group->instances);
    free(group->allocated);
}

/* Find the start of a machine; one that is there to fill a lane is the last one once more, and tells nothing. */
static int start_machine(Instance *instance, const Machines *machines, int machine) {
    State *state = &instance->state;
    memset(state, 0, sizeof *state);
    memset(&instance->watch, 0, sizeof instance->watch);
    instance->environment = (void *)(intptr_t)(machines->first + machine);
    instance->signals = machines->signals[machine];
    instance->signal_count = machines->signal_counts[machine];
    instance->reason[0] = '\0';
    instance->known = NOTHING;
    COPY(state->parameters, machines->parameters + (size_t)PARAMETERS * (size_t)machine, PARAMETERS);
    COPY(state->inputs, machines->inputs + (size_t)INPUTS * (size_t)machine, INPUTS);
    memcpy(state->held, machines->held, sizeof(int) * INPUTS);
    state->step_size = machines->step_size;
    state->tolerance_factor = 1.0;
    state->mode = STEPPING;
    return initialize(instance);
}

/* Let lanes have the choices of coordinates of their machines, and those without one that of another machine. */
static void take_choices(Group *group, unsigned lanes) {
    const State *chosen = NULL;
    for (int lane = 0; lane < LANES && !chosen; lane++) {
        if (group->running >> lane & 1u) chosen = &group->instances[lane].state;
    }
    for (int lane = 0; lane < LANES && chosen; lane++) {
        State *state = &group->instances[lane].state;
        if (!(lanes >> lane & 1u)) continue;
        if (!has_choice(state)) memcpy(state->dependent, chosen->dependent, sizeof state->dependent);
        take_choice(group, lane);
    }
}

/* Start the chosen machines of a group, each in its lane; returns which they are. */
static unsigned start_lanes(Group *group, const Machines *machines) {
    unsigned started = 0, spares = 0;
    for (int lane = 0; lane < LANES; lane++) {
        Instance *instance = &group->instances[lane];
        const int spare = lane >= machines->machines;
        if (!spare && !machines->chosen[lane]) continue;
        group->stretches[lane] = (Stretch){0};
        group->alone[lane] = 0.0;
        if (spare) {
            spares |= 1u << lane;
            instance->state = group->instances[lane - 1].state;
            end_lane(group, lane);
        } else {
            started |= 1u << lane;
            group->running |= 1u << lane;
            if (!start_machine(instance, machines, lane)) end_lane(group, lane);
        }
    }
    take_choices(group, started | spares);
    for (int lane = 0; lane < LANES; lane++) {
        if ((started | spares) >> lane & 1u) load_lane(group, lane);
    }
    group->matrix_step = splat(machines->step_size);
    group->state.tolerance_factor = splat(1.0);
    return started;
}

/* Write what became of machines beside their rows. */
static void report_lanes(const Group *group, const Machines *machines) {
    for (int lane = 0; lane < machines->machines; lane++) {
        const Instance *instance = &group->instances[lane];
        const int failed = !(group->running >> lane & 1u);
        memcpy(machines->reasons + (size_t)REASON * (size_t)lane, failed ? instance->reason : "", failed ? REASON : 1);
        write_counts(&instance->state, machines->counts + (size_t)COUNTED * (size_t)lane);
        machines->alone[lane] = group->alone[lane];
        COPY(machines->records + (size_t)ERROR_RECORD * (size_t)lane, instance->state.error_record, ERROR_RECORD);
    }
}

/* Set inputs of a machine by hand, from now on. */
static void set_inputs(State *state, const int *newly, const double *values) {
    carry_inputs(state);
    for (int i = 0; i < INPUTS; i++) {
        if (!newly[i]) continue;
        state->inputs[i] = values[i];
        state->held[i] = 1;
    }
}

/* Start the chosen machines of a group at time zero, and record that as their first row; others stay where they are. */
static void start_group(Group *group, const Machines *machines) {
    int chosen = 0;
    for (int lane = 0; lane < machines->machines; lane++) chosen |= machines->chosen[lane];
    if (!chosen) return;
    record_lanes(group, machines, start_lanes(group, machines) & group->running);
    report_lanes(group, machines);
}

/* Let the machines of a group go on to the times of further rows; those that fail have a reason, and the others go on. */
static void advance_group(Group *group, const Machines *machines) {
    for (int lane = 0; lane < machines->machines; lane++) {
        Stretch *stretch = &group->stretches[lane];
        State *state = &group->instances[lane].state;
        const double first = time_of(machines, lane, machines->first_row);
        stretch->row = machines->first_row;
        stretch->last = time_of(machines, lane, machines->count - 1);
        stretch->same = same_time(state, first - state->time, state->time, stretch->last);
        if (machines->newly && first > state->time) set_inputs(state, machines->newly, machines->set + INPUTS * lane);
    }
    make_rows(group, machines);
    report_lanes(group, machines);
}

/* The same of several groups. */
EXPORT void mbsfmu_start_groups(Group *const *groups, const Machines *machines, int count) {
    for (int k = 0; k < count; k++) start_group(groups[k], machines + k);
}

EXPORT void mbsfmu_advance_groups(Group *const *groups, const Machines *machines, int count) {
    for (int k = 0; k < count; k++) advance_group(groups[k], machines + k);
}
