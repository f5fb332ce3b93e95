/* A group of machines of one model, one a lane. An instance of each has the state of all that is rare: the start, events,
 * updates, steps that are halved. Between these the lanes have it. */
#ifndef MBSFMU_LANE_GROUP_H
#define MBSFMU_LANE_GROUP_H

#include "instance.h"
#include "lanes.h"

#if SOLVER == ROSENBROCK
#define SIZE REDUCED_SIZE
#define CHAINED FREEDOM
#define FOLLOWS_SLIGHT (SOLVER == ROSENBROCK)
#include "lane_adaptive.h"
#endif

/* The arrays that a step hands over to the next. */
typedef struct {
#define FIELD(name, size) Lanes name[ROOM(size)];
    STATE_ARRAYS(FIELD)
#undef FIELD
    Lanes tolerance_factor;
} LaneState;

/* The way of a lane to the next point at which anything but steps happens. */
typedef struct {
    double begin, end;
    double step, count, made;       /* equal steps, as `advance_equally` has them */
#if SOLVER == ROSENBROCK
    int behind;                     /* the first row that is not on the way: at its end, or behind */
#endif
    int row;                        /* the next one that is recorded */
    int at_halt;                    /* whether an event, an update or the end of the run is there */
    int varying;                    /* whether inputs change on the way */
    int left;                       /* whether what was due at the last halt has been done */
    double halt;                    /* the next event, update or end of the run */
    double output, last, same;      /* the next output, the end of the run, and by how much times may differ that are one */
} Stretch;

typedef struct {
    LaneState state;
    Lanes memory[MEMORY];
    LaneParts parts;                /* arguments of the traced functions, pointing into `memory` */
    Lanes outputs[ROOM(OUTPUTS)], violation[2], reactions[ROOM(REACTIONS)];
    /* The inverse of the iteration matrix that was used last, and its use, which is the same for all lanes but for the rate of
     * convergence and the step that it was made for. */
    Lanes inverse[ROOM(UNKNOWNS * UNKNOWNS)], rate, matrix_step;
    double uses, spent;
    int has_matrix;
#if SOLVER == ROSENBROCK
    Lanes slope[ROOM(SLOPES * CONTROLLED)];  /* the derivatives of y' by y, without the rows of z_i' */
    Lanes pushed[ROOM(FREEDOM * CONTROLLED)], of_rates[ROOM((SLOPES - FREEDOM) * CONTROLLED)]; /* what they follow from */
    Way way;                        /* of all lanes to the next halt */
    Attempt attempt;
    const struct Machines *machines;
    Lanes leading[ROOM(COORDINATES * FREEDOM)]; /* R_z at the state */
#endif
    /* Each lane's choice of coordinates, and how steep its slopes may be; whether all lanes have the same choice. */
    int dependent[ROOM(RANK)][LANES], independent[ROOM(FREEDOM)][LANES], uniform;
    Lanes slope_limits[ROOM(FREEDOM)];
    Stretch stretches[LANES];
    unsigned running;               /* lanes whose machines have not failed */
    double alone[LANES];            /* steps that were made for one machine alone */
#if ERROR > 0
    Lanes error[ERROR], error_history[ERROR_HISTORY]; /* of all lanes; their records are those of the instances */
#endif
    Instance *instances;            /* LANES of them */
    void *allocated;                /* what is to be freed */
} Group;

/* Let every lane have the arguments of the traced functions. */
static inline void connect_lanes(Group *group) {
    LaneParts *parts = &group->parts;
    Lanes *next = group->memory;
#define TAKE(name, size) parts->name = next, next += ROOM(size);
    ARGUMENTS(TAKE)
#undef TAKE
#define BEGIN_AT(name, size) parts->begun_##name = group->state.name;
    STATE_ARRAYS(BEGIN_AT)
#undef BEGIN_AT
}

#define COPY_LANES(to, from, count) memcpy((to), (from), sizeof(Lanes) * (size_t)(count))

static inline void set_lane(Lanes *to, int lane, const double *from, int count) {
    for (int i = 0; i < count; i++) to[i][lane] = from[i];
}

static inline void get_lane(double *to, const Lanes *from, int lane, int count) {
    for (int i = 0; i < count; i++) to[i] = from[i][lane];
}

/* The element that each lane's own index means, of those that are so far apart. */
static inline Lanes pick_apart(const Group *group, const Lanes *from, const int *index, int apart) {
    if (group->uniform) return from[apart * *index];
    Lanes result;
    for (int lane = 0; lane < LANES; lane++) result[lane] = from[apart * index[lane]][lane];
    return result;
}

static inline Lanes pick(const Group *group, const Lanes *from, const int *index) {
    return pick_apart(group, from, index, 1);
}

static inline void put(const Group *group, Lanes *to, const int *index, Lanes value) {
    if (group->uniform) {
        to[*index] = value;
        return;
    }
    for (int lane = 0; lane < LANES; lane++) to[index[lane]][lane] = value[lane];
}

/* Whether coordinates of a machine have been chosen: its start may have failed before. */
static int has_choice(const State *state) {
    int held = 0;
    for (int j = 0; j < COORDINATES; j++) held += state->dependent[j];
    return held == RANK;
}

/* Take over an instance's choice of coordinates, where it has made one. */
static void take_choice(Group *group, int lane) {
    const int *dependent = group->instances[lane].state.dependent;
    int held = 0, free = 0;
    if (!has_choice(&group->instances[lane].state)) return;
    for (int j = 0; j < COORDINATES; j++) {
        if (dependent[j]) {
            group->dependent[held++][lane] = j;
        } else {
#if RANK > 0
            group->slope_limits[free][lane] = LARGEST_SLOPE * element_scales[CONSTRAINTS * j];
#endif
            group->independent[free++][lane] = j;
        }
    }
    group->uniform = 1;
    for (int k = 0; k < RANK; k++) {
        for (int other = 1; other < LANES; other++) group->uniform &= group->dependent[k][other] == group->dependent[k][0];
    }
    for (int i = 0; i < COORDINATES * FREEDOM; i++) group->parts.basis[i][lane] = 0.0;
    for (int i = 0; i < COORDINATES * CONSTRAINTS; i++) group->parts.lift[i][lane] = 0.0;
    group->has_matrix = 0;
}

/* Let a lane have the state of its instance, whose arguments hold the same. */
static void load_lane(Group *group, int lane) {
    Instance *instance = &group->instances[lane];
    const State *state = &instance->state;
    const LaneParts *parts = &group->parts;
    load(instance);
#define LOAD(name, size) set_lane(group->state.name, lane, state->name, size), set_lane(parts->name, lane, state->name, size);
    STATE_ARRAYS(LOAD)
#undef LOAD
#if ERROR > 0
    set_lane(group->error, lane, state->error, ERROR);
    set_lane(group->error_history, lane, state->error_history, ERROR_HISTORY);
#endif
    set_lane(parts->parameters, lane, state->parameters, PARAMETERS);
    set_lane(parts->inputs, lane, state->effective, INPUTS);
    set_lane(parts->discrete, lane, state->discrete, DISCRETE);
    for (int k = 0, held = 0; k < COORDINATES; k++) {
        if (!state->dependent[k]) continue;
        if (group->dependent[held++][lane] != k) {
            take_choice(group, lane);
            return;
        }
    }
}

/* Let an instance have the state of its lane. */
static void store_lane(Group *group, int lane) {
    State *state = &group->instances[lane].state;
#define STORE(name, size) get_lane(state->name, group->state.name, lane, size);
    STATE_ARRAYS(STORE)
#undef STORE
#if ERROR > 0
    get_lane(state->error, group->error, lane, ERROR);
    get_lane(state->error_history, group->error_history, lane, ERROR_HISTORY);
#endif
    group->instances[lane].known = NOTHING;
}

#endif
