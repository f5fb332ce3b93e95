/* An instance of the unit. All that influences its future is in its state, which is copied as a whole. */
#ifndef MBSFMU_INSTANCE_H
#define MBSFMU_INSTANCE_H

#include "runtime.h"
#include "times.h"
#include "unit.h"

/* Room for all arguments of the traced functions; see `connect_memory`. */
#define ADD(name, size) + ROOM(size)
enum { MEMORY = 0 ARGUMENTS(ADD) };
#undef ADD

typedef enum { INSTANTIATED, INITIALIZING, STEPPING, AT_EVENTS, CONTINUOUS_TIME, TERMINATED } Mode;

#if MODEL_EXCHANGE

/* Where the solver of a host has come to, from which its next points are reached: dependent coordinates and algebraic loops
 * are looked for near it. */
typedef struct {
    double coordinates[ROOM(COORDINATES)], loop_iterates[ROOM(LOOP_ITERATES)];
} ConsistentPoint;

#endif

typedef struct {
    double time, step_size, stop_time;
    double passed;                      /* events up to this time have passed: the present, but for round-off */
    double due;                         /* events up to this time are those of the present, which may have been held */
    double sampled;                     /* discrete states were updated up to this time */
    double discrete[ROOM(DISCRETE)];    /* states that change at instants only */
    double parameters[ROOM(PARAMETERS)], calculated[ROOM(CALCULATED_PARAMETERS)];
    double inputs[ROOM(INPUTS)];        /* set by hand, start values before */
    double slopes[ROOM(INPUTS)];        /* their derivatives by time during the next step */
    double slope_time;                  /* when `inputs` had their values */
    double effective[ROOM(INPUTS)];     /* the inputs that the accelerations are consistent with */
    /* What one step hands over to the next, by the generated lists; mbsfmu/stepping/state.py says what each is. */
#define FIELD(name, size) double name[ROOM(size)];
    STATE_ARRAYS(FIELD)
    KEPT_ARRAYS(FIELD)
#undef FIELD
    double tolerance_factor;            /* by which their tolerances are what they were made with */
    double iterations[LEVELS][3];       /* of projections, by level: solutions, sum, most */
    double embedded_distance;              /* of rk4, added up over the steps */
#if CLOCKS
    double clock_start;                 /* the start of the run, which ticks of periodic clocks are counted from */
    double ticks[ROOM(SAMPLINGS)];      /* how many ticks of each clock have been made */
    double ticking[ROOM(SAMPLINGS)];    /* 1 of a clock that was set and whose update has not been made yet */
#endif
    double steps, newton_total, newton_max, iteration_matrices, failures, retries, evaluations, repartitions; /* what the run has cost */
    double highest[ROOM(HIGHEST * BALANCES)]; /* energies until now, see energy_watch.c */
    double drifts[ROOM(DRIFTS * BALANCES)]; /* the first large drift of each, there */
    double held_last[ROOM(CONDITIONS)], happened_at[ROOM(CONDITIONS)]; /* times in s, see run_reports.c */
    uint64_t communications;            /* communication steps */
#if MODEL_EXCHANGE
    double point[ROOM(POINT)];          /* the continuous states in continuous time, as the host has set them */
    ConsistentPoint consistent;
    int exchanges;                      /* whether the host integrates; of one that does not nothing here counts */
    int away;                           /* whether the state is not at the point */
#if INDICATORS > 0
    int below[INDICATORS];              /* whether event indicators were below zero at the last event */
#endif
    int led;                            /* whether continuous states were set one by one since event mode was entered */
#endif
    int has_held[ROOM(CONDITIONS)], happened[ROOM(CONDITIONS)]; /* conditions: before, and without having been told */
    int held[ROOM(INPUTS)];             /* inputs that were set and follow no signal any more */
    int dependent[ROOM(COORDINATES)];   /* the choice of coordinates */
    int mode, has_stop_time, initialized, energies_followed;
    int contradictory;                  /* parameters that were set since the last step cannot be together */
    int step_status;                    /* what the last step returned */
} State;

/* What follows the rank of the loop equations; it decides on nothing but what is told. */
typedef struct {
    double time, coordinates[ROOM(COORDINATES)], velocities[ROOM(COORDINATES)], references[ROOM(REFERENCES)];
    double size;                        /* least pivot of a minor of Phi_z where it was chosen … */
    double least;                       /* … and at the last point */
    int rows[ROOM(INDEPENDENT)], columns[ROOM(INDEPENDENT)], sign;
    int outermost;                      /* the row that stands out least */
    double seen_time, seen[ROOM(COORDINATES)]; /* where the run was looked at last, had it moved far enough or not */
    int follows;                        /* whether the next point of the run follows from this one */
    int warned;
} Watch;

typedef enum { NOTHING, OUTPUTS_KNOWN, EVERYTHING_KNOWN } Known;

/* Times at which something is wanted inside an interval, where steps need not end; what takes it finds the state there. */
typedef struct {
    const double *times;
    int count;
    void (*take)(Instance *, double time);
    void *taker;
    void (*note_step)(Instance *, double end); /* called where steps of a Rosenbrock method end; NULL where nobody asks */
} Wanted;

/* The last step, where it was discarded and nothing was set since. */
typedef struct {
    int is_set;
    double time, length;
} Discarded;

/* Places where a state waits while another one is tried: not on the stacks of threads, which are short. Each who tries has
 * one of its own, since some call others. */
typedef enum {
    BEFORE_STEP, BEFORE_EVENTS, BEFORE_LOOKING, BEFORE_PASSING, BEFORE_POINT, BEFORE_DESCRIPTION, BEFORE_COMPLETION,
    BEFORE_UPDATE, BEFORE_COMPARISON, AT_OUTPUT, WAITING_STATES,
} Waiting;

/* Numbers of R_z where steps of a Rosenbrock method follow the iteration matrix of the loops. */
#define LED (CLOSES_LOOPS && AHEAD > 0 && RANK > 0 ? COORDINATES * FREEDOM : 0)

/* Whether derivatives of the rates of continuous states are found all at once, as matrices. */
#define KEEPS_JACOBIAN (MODEL_EXCHANGE && CHANGES_KNOWN && !CHANGES)

#if KEEPS_JACOBIAN

/* All that the derivatives of the rates depend on, elements of State by name. */
#define OF_JACOBIAN(EACH) \
    EACH(coordinates, COORDINATES) EACH(velocities, COORDINATES) EACH(states, STATES) EACH(effective, INPUTS) \
    EACH(momenta, COORDINATES) EACH(parameters, PARAMETERS) EACH(discrete, DISCRETE) EACH(references, REFERENCES) \
    EACH(active, CONSTRAINTS)

/* The derivatives of the rates of the continuous states, kept until something that they depend on changes. */
typedef struct {
    int is_known, inputs_known;         /* those by states, and by inputs as well */
    int dependent[ROOM(COORDINATES)];
    double time;
#define PLACE_FOR(name, size) double name[ROOM(size)];
    OF_JACOBIAN(PLACE_FOR)
#undef PLACE_FOR
    double by_states[ROOM(POINT * (POINT - INTEGRALS))], by_inputs[ROOM(POINT * INPUTS)];
    double basis[ROOM(COORDINATES * FREEDOM)], lift[ROOM(COORDINATES * CONSTRAINTS)]; /* R_z and G at the point */
} PointJacobian;

#endif

struct Instance {
    State state, waiting[WAITING_STATES];
    Parts parts;                        /* arguments of the traced functions, pointing into `memory` */
    double memory[MEMORY];
    double unturned[ROOM(REFERENCES)];  /* references where nothing has turned yet: quaternions w, x, y, z */
    double outputs[ROOM(OUTPUTS)], violation[2], reactions[ROOM(REACTIONS)];
    const Signal *signals;              /* that inputs follow until they are set */
    int signal_count;
    Wanted *wanted;                     /* NULL where nothing is */
    double replaced[ROOM(ITERATION_MATRIX)];     /* the state's iteration matrix where the communication step began … */
    int has_replaced;                   /* … where another one has taken its place since */
#if FACTORS > 0 && ITERATION_MATRIX > 0
    double factored[ITERATION_MATRIX], factored_step[2]; /* what the memory `factors` has been found from */
#endif
#if LED
    double leading[LED];                /* R_z at the state … */
    int leads;                          /* … where the step that begins there has found it */
#endif
    const volatile int *stop;           /* becomes true where a run in process is to end; NULL elsewhere */
    Watch watch;
    int drift_warned[ROOM(BALANCES)];   /* decides on nothing but what is told */
    double told_at[ROOM(CONDITIONS)];   /* times in s of what happened last of what was told … */
    int is_told[ROOM(CONDITIONS)];      /* … where something was */
    int was_saved;                      /* whether a host has a state of it, or has had one: only such hosts take steps back */
    Discarded discarded;
    Known known;                        /* which of these fit the state */
#if MODEL_EXCHANGE
    double flow[ROOM(POINT)];           /* the rates of the continuous states at the point … */
    int flow_known;                     /* … where they have been found */
#if KEEPS_JACOBIAN
    PointJacobian jacobian;
#endif
    int exchanges;                      /* what it was made for, which no reset changes */
#endif
#if CLOCKS
    int follows_clocks;                 /* whether the host makes the updates of blocks, which no reset changes */
#endif
    Logger logger;
    void *environment;                  /* of the logger */
    char reason[512];                   /* of the last failure */
    char refusal[512];                  /* why equations could not be evaluated in a step that was tried, the last time */
#if SOLVER == ROSENBROCK
    struct Linearization *linearization; /* of the step that is made */
#endif
};

#define COPY(to, from, count) memcpy((to), (from), sizeof(double) * (size_t)(count))

/* A state without its iteration matrix, which is large and rarely another one after a step. */
static inline void copy_but_iteration_matrix(State *to, const State *from) {
    const size_t behind = offsetof(State, iteration_matrix) + sizeof from->iteration_matrix;
    memcpy(to, from, offsetof(State, iteration_matrix));
    memcpy((char *)to + behind, (const char *)from + behind, sizeof *from - behind);
}

/* Give every argument of the traced functions its place. */
static inline void connect_memory(Instance *instance) {
    Parts *parts = &instance->parts;
    double *next = instance->memory;
#define TAKE(name, size) parts->name = next, next += ROOM(size);
    ARGUMENTS(TAKE)
#undef TAKE
#define BEGIN_AT(name, size) parts->begun_##name = instance->state.name;
    STATE_ARRAYS(BEGIN_AT)
#undef BEGIN_AT
    *parts->penalty = PENALTY;
    for (int i = 0; i < REFERENCES; i++) instance->unturned[i] = i % 4 == 0 ? 1.0 : 0.0;
}

/* Take over what the traced functions have as the state; integrals apart. */
static inline void keep(Instance *instance) {
    State *state = &instance->state;
    const Parts *parts = &instance->parts;
    COPY(state->coordinates, parts->coordinates, COORDINATES);
    COPY(state->velocities, parts->velocities, COORDINATES);
    COPY(state->accelerations, parts->accelerations, COORDINATES);
    COPY(state->multipliers, parts->multipliers, CONSTRAINTS);
    COPY(state->states, parts->states, STATES);
    COPY(state->rates, parts->rates, STATES);
    COPY(state->momenta, parts->momenta, COORDINATES);
    COPY(state->momentum_rates, parts->momentum_rates, COORDINATES);
}

/* Whether an instance runs: it is initialized and not terminated. */
static inline int is_running(const State *state) { return state->mode >= STEPPING && state->mode <= CONTINUOUS_TIME; }

/* Whether a run in process is to end here. */
static inline int is_stopped(const Instance *instance) { return instance->stop && *instance->stop; }

/* Return 0 and keep the reason. */
static inline int fail(Instance *instance, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(instance->reason, sizeof instance->reason, format, arguments);
    va_end(arguments);
    return 0;
}

/* Say so, and behind it the reason that there was until now, where there is one. */
static inline int fail_because(Instance *instance, const char *format, ...) {
    char reason[sizeof instance->reason];
    va_list arguments;
    memcpy(reason, instance->reason, sizeof reason);
    va_start(arguments, format);
    vsnprintf(instance->reason, sizeof instance->reason, format, arguments);
    va_end(arguments);
    const size_t said = strlen(instance->reason);
    if (*reason) snprintf(instance->reason + said, sizeof instance->reason - said, ": %s", reason);
    return 0;
}

/* Say something to the layer above. */
static inline void report(Instance *instance, Status status, const char *format, ...) {
    char sentence[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    instance->logger(instance->environment, status, sentence);
}

/* Say why a call is not done, and return that. */
#define REFUSE(...) (report(instance, REFUSED, __VA_ARGS__), REFUSED)

/* -- how the errors of steps are stored ----------------------------------------------------------------------------- */

#define ERROR_RATES (2 * COORDINATES + STATES)

/* Where each error stands: of z, z', z'', x and x', and of p and p' or of the multipliers among the unknowns. */
#define OF_Z(error) (error)
#define OF_V(error) ((error) + COORDINATES)
#define OF_A(error) ((error) + 2 * COORDINATES)
#define OF_X(error) ((error) + 3 * COORDINATES)
#define OF_RATES(error) ((error) + 3 * COORDINATES + STATES)
#define OF_MOMENTA(error) ((error) + 3 * COORDINATES + 2 * STATES)
#define OF_MULTIPLIERS(error) OF_MOMENTA(error)

#if ERROR > 0
/* Where the mean changes of the errors of multipliers stand, behind what is remembered of the rates. */
#define CHANGES_OF(history) ((history) + 4 * ERROR_RATES)

/* The error is not known from here on; the first reason is the cause of later ones. */
static inline void lose_error(State *state, int loss) {
    double *const reason = &state->error_record[ERROR_RECORD - 1];
    if (*reason == 0.0) *reason = loss;
}
#endif

#endif
