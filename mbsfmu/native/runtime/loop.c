/* The steps alone: many of them in one call, for runs in process. */
#include "steps.c"

#define WIDTH (5 * COORDINATES + CONSTRAINTS + 2 * STATES + 2 * INTEGRALS + REFERENCES + CONSTRAINTS)

typedef enum { READ, WRITE } Direction;

/* Copy a state from or to a row: z, z', z'', multipliers, x, x', integrals and their rates, p, p', references,
 * loop equations that count. */
static void copy_row(State *state, double *row, Direction direction) {
    double *const arrays[] = {
        state->coordinates, state->velocities, state->accelerations, state->multipliers,
        state->states, state->rates, state->integrals, state->integral_rates,
        state->momenta, state->momentum_rates, state->references, state->active,
    };
    const int sizes[] = {
        COORDINATES, COORDINATES, COORDINATES, CONSTRAINTS, STATES, STATES, INTEGRALS, INTEGRALS,
        COORDINATES, COORDINATES, REFERENCES, CONSTRAINTS,
    };
    for (int k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++) {
        if (direction == READ) {
            COPY(arrays[k], row, sizes[k]);
        } else {
            COPY(row, arrays[k], sizes[k]);
        }
        row += sizes[k];
    }
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
    Instance *instance, const double *parameters, double *row, const int *choice, int count, const double *steps,
    const double *inputs, double *rows, int *choices, double *statistics
) {
    State *state = &instance->state;
    copy_row(state, row, READ);
    memcpy(state->dependent, choice, sizeof(int) * COORDINATES);
    COPY(instance->parts.parameters, parameters, PARAMETERS);
    state->newton_total = state->newton_max = 0.0;
    memset(state->iterations, 0, sizeof state->iterations);
    int made = 0;
    while (made < count) {
        COPY(instance->parts.inputs, inputs + INPUTS * made, INPUTS);
        if (!try_step(instance, steps[made]) || !loops_closed(instance, 0.0)) break;
        copy_row(state, rows + WIDTH * made, WRITE);
        memcpy(choices + COORDINATES * made, state->dependent, sizeof(int) * COORDINATES);
        made++;
    }
    statistics[0] = state->newton_total;
    statistics[1] = state->newton_max;
    memcpy(statistics + 2, state->iterations, sizeof state->iterations);
    return made;
}
