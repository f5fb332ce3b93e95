/* Runs in process: from output to output in one call, with a row of everything that can be read at each. */
#include "model_readings.c"

#include "identity.h"

#include "steps.h"

#include "linear.c"
#include "orthogonal.c"
#include "consistent.c"
#include "sampling.c"
#include "readings.c"
#include "change_points.c"
#include "run_loop.c"

/* What a run hands over from call to call: fields and arrays of the state, all of them doubles. */
enum {
    READINGS = INPUTS + 3 * COORDINATES + STATES + DISCRETE + INTEGRALS + OUTPUTS + REACTIONS + VIOLATIONS + UNCONVERGED
};
#define READ(name, size) memcpy(&state->name, numbers, sizeof(double) * (size_t)(size)), numbers += (size);
#define WRITE(name, size) memcpy(numbers, &state->name, sizeof(double) * (size_t)(size)), numbers += (size);

static void read_present(State *state, const double *numbers) { PRESENT(READ) }
static void write_present(const State *state, double *numbers) { PRESENT(WRITE) }
static void read_counts(State *state, const double *numbers) { COUNTS(READ) }
static void write_counts(const State *state, double *numbers) { COUNTS(WRITE) }

/* A run from output to output; mbsfmu/native/compiled.py has the same fields. */
typedef struct {
    const double *times;        /* where it is at first, and outputs, ascending */
    double *rows;               /* a row of readings for each; NULL where none are wanted */
    int count;                  /* of the times */
    int warned;                   /* whether a change point was told of */
    volatile int done;          /* of the times, those that the run has reached */
    volatile int stop;          /* set where the run is to end */
    int ahead;                  /* whether the last step may go past the last time */
    double same;                /* by how many s times may differ that are one */
    double *ends;               /* of steps, in s; `room` of them at most, and none from solvers that do not tell */
    int room, steps;
    State *reached;             /* at the last output */
} Recording;

/* What the library was made from. */
EXPORT const char *mbsfmu_identity(void) { return IDENTITY; }

/* The sizes of all that is handed over, written to at most `room` places: of what PRESENT and COUNTS list, of the flags of
 * inputs and of coordinates, and of a row. Returns how many there are. */
EXPORT int mbsfmu_sizes(int *sizes, int room) {
#define SIZE_OF(name, size) (size),
    const int all[] = {PRESENT(SIZE_OF) COUNTS(SIZE_OF) INPUTS, COORDINATES, READINGS};
#undef SIZE_OF
    const int count = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < count && k < room; k++) sizes[k] = all[k];
    return count;
}

/* An instance whose inputs follow signals, which stay the caller's, and which tells the logger what it has to say. */
EXPORT Instance *mbsfmu_create(const Signal *followed, int signal_count, Logger logger) {
    Instance *instance = calloc(1, sizeof(Instance));
    if (!instance) return NULL;
    connect_memory(instance);
    instance->signals = followed;
    instance->signal_count = signal_count;
    instance->logger = logger;
    return instance;
}

EXPORT void mbsfmu_destroy(Instance *instance) {
    free(instance);
}

/* Why the last run has failed. */
EXPORT const char *mbsfmu_reason(const Instance *instance) { return instance->reason; }

/* Write everything that can be read, in the order of `readings` of mbsfmu/simulation/variable_table.py. */
static void write_readings(Instance *instance, double *row) {
    const State *state = &instance->state;
    find_outputs(instance);
    find_reactions(instance);
#define PUT(values, size) COPY(row, values, size), row += (size)
    PUT(state->effective, INPUTS);
    PUT(state->coordinates, COORDINATES);
    PUT(state->velocities, COORDINATES);
    PUT(state->accelerations, COORDINATES);
    PUT(state->states, STATES);
    PUT(state->discrete, DISCRETE);
    PUT(state->integrals, INTEGRALS);
    PUT(instance->outputs, OUTPUTS);
    PUT(instance->reactions, REACTIONS);
    PUT(instance->violation, VIOLATIONS);
    PUT(state->unconverged, UNCONVERGED);
#undef PUT
}

/* Take notice of the next output, which the state is at; rates jump there before they are read. */
static void arrive(Instance *instance, Recording *recording) {
    instance->state.passed = instance->state.time + recording->same;
    refresh(instance);
    if (recording->rows) write_readings(instance, recording->rows + (size_t)READINGS * (size_t)recording->done);
    *recording->reached = instance->state;
    recording->done++;
}

/* Take an output inside a step, which the state was brought to. */
static void take_inside(Instance *instance, double time) {
    instance->state.time = time;
    instance->known = NOTHING;
    step_functions.inputs_at(instance, time, instance->state.effective);
    follow_rank(instance);
    arrive(instance, instance->wanted->taker);
}

/* Take notice of the end of a step. */
static void note_step(Instance *instance, double end) {
    Recording *recording = instance->wanted->taker;
    if (recording->steps < recording->room) recording->ends[recording->steps] = end;
    recording->steps++;
}

/* Advance over outputs to an end. */
static int advance_over(Instance *instance, Recording *recording, int outputs, double end) {
    Wanted wanted = {recording->times + recording->done, outputs, take_inside, recording, recording->room > 0 ? note_step : NULL};
#if CONTINUOUS
    instance->wanted = &wanted;
    const double *times = recording->times, last = times[recording->count - 1];
    const double horizon = recording->ahead && end == last ? horizon_of(instance, recording->same, end, last - *times) : end;
    const int made = advance_to(instance, end, horizon);
    instance->wanted = NULL;
    return made;
#else
    for (int k = 0; k < outputs; k++) {
        if (!advance_to(instance, wanted.times[k], wanted.times[k])) return 0;
        arrive(instance, recording);
    }
    return advance_to(instance, end, end);
#endif
}

/* Make steps up to a halt, over all outputs until then; updates that are due at the halt come before what is read there. */
static int go_on(Instance *instance, Recording *recording, double halt) {
    const double *times = recording->times, same = recording->same;
    int next = recording->done;
    while (next < recording->count && times[next] <= halt + same) next++;
    const int arrives = next > recording->done && times[next - 1] >= halt - same;
    const double end = arrives ? times[next - 1] : halt;
    if (!advance_over(instance, recording, next - recording->done - arrives, end)) return 0;
    if (!sample(instance, end + same)) return 0;
    if (arrives) arrive(instance, recording);
    return 1;
}

/* Whether two states are at one point of a run, which the watched minor then goes on from. */
static int is_watched(const Instance *instance) {
    const State *state = &instance->state;
    const Watch *watch = &instance->watch;
    return watch->follows && watch->seen_time == state->time
        && memcmp(watch->seen, state->coordinates, sizeof(double) * COORDINATES) == 0
        && memcmp(watch->references, state->references, sizeof(double) * REFERENCES) == 0;
}

/* Run from the state in `present` from output to output, and write the one at the last output that was reached. Returns 0
 * where a step has failed, or where the run was to end before that. */
EXPORT int mbsfmu_record(
    Instance *instance, double *present, int *held, int *dependent, double *counts, Recording *recording
) {
    State *const state = &instance->state, *const reached = &instance->waiting[AT_OUTPUT];
    const int last = recording->count - 1;
    double halt;
    int made = 1;
    read_present(state, present);
    state->slope_time = state->time;
    state->initialized = 1;  /* references change by the angles that are turned, and not as at the start */
    read_counts(state, counts);
    memcpy(state->held, held, sizeof(int) * INPUTS);
    memcpy(state->dependent, dependent, sizeof(int) * COORDINATES);
    instance->known = NOTHING;
    instance->stop = &recording->stop;
    load(instance);
    instance->watch.warned = recording->warned;
    if (!is_watched(instance)) {
        instance->watch.follows = 0;
        follow_rank(instance);
    }
    recording->same = same_time(state, recording->times[1] - recording->times[0], recording->times[0], recording->times[last]);
    recording->reached = reached;
    *reached = *state;
    recording->done = 1;
    while (made && recording->done < recording->count) {
        made = leave(instance, recording->same, recording->times[last], &halt) && go_on(instance, recording, halt);
    }
    if (!made) instance->watch.follows = 0;
    write_present(reached, present);
    write_counts(state, counts);
    memcpy(dependent, reached->dependent, sizeof(int) * COORDINATES);
    recording->warned = instance->watch.warned;
    instance->stop = NULL;
    return made;
}
