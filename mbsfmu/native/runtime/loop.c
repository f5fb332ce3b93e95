/* The steps alone: many of them in one call, for runs in process. */
#include "steps.c"

#include "identity.h"

#define ADD(name, size) + (size)
enum { WIDTH = 0 STATE_ARRAYS(ADD) };
#undef ADD

/* Take a state from a row of its arrays, one after the other. */
static void read_row(State *state, const double *row) {
#define READ(name, size) COPY(state->name, row, size), row += (size);
    STATE_ARRAYS(READ)
#undef READ
}

static void write_row(const State *state, double *row) {
#define WRITE(name, size) COPY(row, state->name, size), row += (size);
    STATE_ARRAYS(WRITE)
#undef WRITE
}

/* What the library was made from. */
EXPORT const char *mbsfmu_identity(void) { return IDENTITY; }

/* The sizes of all that is handed over, written to at most `room` places: of the arrays of a state, of inputs,
 * parameters, discrete states, choices of coordinates and statistics. Returns how many there are. */
EXPORT int mbsfmu_sizes(int *sizes, int room) {
#define SIZE_OF(name, size) (size),
    const int all[] = {STATE_ARRAYS(SIZE_OF) INPUTS, PARAMETERS, DISCRETE, COORDINATES, STATISTICS};
#undef SIZE_OF
    const int count = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < count && k < room; k++) sizes[k] = all[k];
    return count;
}

EXPORT Instance *mbsfmu_create(void) {
    Instance *instance = calloc(1, sizeof(Instance));
    if (!instance) return NULL;
    connect_memory(instance);
    return instance;
}

EXPORT void mbsfmu_destroy(Instance *instance) { free(instance); }

/* Make up to `count` steps from the state in `row`, with `steps[i]` and `inputs[i]`; write every state to `rows`, its
 * choice of coordinates to `choices`, and Newton iterations to `statistics`: sum, most, followed by iterations of
 * projections. Returns how many steps were made before one failed. */
EXPORT int mbsfmu_steps(
    Instance *instance, const double *parameters, const double *discrete, const double *row, const int *choice, int count,
    const double *steps, const double *inputs, double *rows, int *choices, double *statistics
) {
    State *state = &instance->state;
    read_row(state, row);
    memcpy(state->dependent, choice, sizeof(int) * COORDINATES);
    COPY(instance->parts.parameters, parameters, PARAMETERS);
    COPY(instance->parts.discrete, discrete, DISCRETE);
    state->newton_total = state->newton_max = 0.0;
    memset(state->iterations, 0, sizeof state->iterations);
    int made = 0;
    while (made < count) {
        COPY(instance->parts.inputs, inputs + INPUTS * made, INPUTS);
        if (!try_step(instance, steps[made]) || !loops_closed(instance, 0.0)) break;
        write_row(state, rows + WIDTH * made);
        memcpy(choices + COORDINATES * made, state->dependent, sizeof(int) * COORDINATES);
        made++;
    }
    statistics[0] = state->newton_total;
    statistics[1] = state->newton_max;
    memcpy(statistics + 2, state->iterations, sizeof state->iterations);
    return made;
}
