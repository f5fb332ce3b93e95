/* Sensitivities of trapezoidal steps of double-step, from the start to the end: with S = dw/dp, A = dF/dw and B = dF/dp
 * (I - h/2 A_{n+1}) S_{n+1} = (I + h/2 A_n) S_n + h/2 (B_n + B_{n+1}). mbsfmu/analysis/sensitivities.py says what follows
 * from what, and does the same in Python. */
#include "model.h"

#include "linear.c"
#include "model_sensitivities.c"

#include "run_points.c"

/* Steps of a run, and derivatives of READ of what is computed; mbsfmu/native/sensitivity_library.py has the same fields. */
typedef struct {
    int first, last;                    /* the steps [first, last) */
    const int *begins, *ends;           /* points of each step */
    const double *sizes;                /* in s */
    int directions;
    const double *along;                /* each direction in COLUMNS parameters */
    double *motion;                     /* S before the first step, a row for each direction; becomes that behind the last */
    double *at_begin, *at_end;          /* get derivatives of what is read where each step begins and ends */
} Forward;

/* What is known at a point: derivatives by w and by COLUMNS parameters, column by column. */
typedef struct {
    double pushed[ROOM(FREEDOM * MOVING)], flow[ROOM(FLOW * MOVING)], read[ROOM(READ * POINT)];
    double pushed_by[ROOM(FREEDOM * COLUMNS)], flow_by[ROOM(FLOW * COLUMNS)], read_by[ROOM(READ * COLUMNS)];
} Point;

typedef struct {
    Evaluation evaluation;
    Point point;
    double flow_by_accelerations[ROOM(FLOW * FREEDOM)], read_by_accelerations[ROOM(READ * FREEDOM)];
    double matrix[ROOM(SOLVED * SOLVED)];
    int mass_pivots[ROOM(FREEDOM)], pivots[ROOM(SOLVED)];
} Work;

/* The sizes of all that is handed over, written to at most `room` places; returns how many there are. */
EXPORT int mbsfmu_sizes(int *sizes, int room) {
    const int all[] = {COORDINATES, CONSTRAINTS, FREEDOM, STATES, INTEGRALS, INPUTS, PARAMETERS, COMPUTED, READ, COLUMNS};
    const int count = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < count && k < room; k++) sizes[k] = all[k];
    return count;
}

/* Turn columns of derivatives of M'' z_i'' into those of z_i'', and add what these make of other rates and of readings. */
static void accelerate(Work *work, int columns, double *pushed, double *flow, double *read) {
    const double *mass = work->evaluation.mass;
    for (int j = 0; j < columns; j++) {
        substitute(FREEDOM, mass, work->mass_pivots, pushed + FREEDOM * j);
#if RATES_BY_ACCELERATIONS || DRIVEN > 0
        add_columns(FREEDOM, FLOW, work->flow_by_accelerations, FLOW, pushed + FREEDOM * j, flow + FLOW * j);
#else
        (void)flow;
#endif
        add_columns(FREEDOM, READ, work->read_by_accelerations, READ, pushed + FREEDOM * j, read + READ * j);
    }
}

/* Bring the arguments to a completed point, and find the derivatives there. */
static int differentiate(Work *work, const Run *run, int index) {
    const Parts *parts = &work->evaluation.instance.parts;
    Point *point = &work->point;
    if (!load_completed(&work->evaluation, run, index)) return 0;
    reduced_along_states(
        parts, work->evaluation.mass, point->pushed, point->flow, work->flow_by_accelerations, point->read,
        work->read_by_accelerations
    );
    if (!factorize(FREEDOM, work->evaluation.mass, work->mass_pivots)) return 0;
    accelerate(work, MOVING, point->pushed, point->flow, point->read);
#if COLUMNS > 0
    reduced_along_parameters(parts, point->pushed_by, point->flow_by, point->read_by);
    accelerate(work, COLUMNS, point->pushed_by, point->flow_by, point->read_by);
#endif
    return 1;
}

/* The derivative of F along a direction of parameters in which w changes by `motion`. */
static void rates_along(const Point *point, const double *motion, const double *along, double *rates) {
    for (int i = 0; i < POINT; i++) rates[i] = i < FREEDOM ? motion[FREEDOM + i] : 0.0;
    add_columns(MOVING, FREEDOM, point->pushed, FREEDOM, motion, rates + FREEDOM);
    add_columns(MOVING, FLOW, point->flow, FLOW, motion, rates + 2 * FREEDOM);
    add_columns(COLUMNS, FREEDOM, point->pushed_by, FREEDOM, along, rates + FREEDOM);
    add_columns(COLUMNS, FLOW, point->flow_by, FLOW, along, rates + 2 * FREEDOM);
}

/* The derivatives of what is read along all directions: READ rows of them. */
static void read_along(const Point *point, const Forward *forward, double *found) {
    for (int direction = 0; direction < forward->directions; direction++) {
        double read[ROOM(READ)] = {0.0};
        add_columns(POINT, READ, point->read, READ, ROW(forward->motion, direction, POINT), read);
        add_columns(COLUMNS, READ, point->read_by, READ, ROW(forward->along, direction, COLUMNS), read);
        for (int i = 0; i < READ; i++) found[i * forward->directions + direction] = read[i];
    }
}

/* Solve (I - h/2 A) motion = given, in place. */
static void solve_step(const Work *work, double half, double *motion) {
    const Point *point = &work->point;
    double scaled[ROOM(MOVING)], *const solved = motion + FREEDOM, *const integrals = motion + FIRST_INTEGRAL;
    for (int i = 0; i < FREEDOM; i++) scaled[i] = half * motion[i];
    add_columns(FREEDOM, FREEDOM, point->pushed, FREEDOM, scaled, solved);
    add_columns(FREEDOM, STATES, point->flow, FLOW, scaled, solved + FREEDOM);
    substitute(SOLVED, work->matrix, work->pivots, solved);
    for (int i = 0; i < FREEDOM; i++) motion[i] += half * solved[i];
    for (int i = 0; i < MOVING; i++) scaled[i] = half * motion[i];
    add_columns(MOVING, INTEGRALS, point->flow + STATES, FLOW, scaled, integrals);
}

/* Go over steps, among which the choice of coordinates stays; returns 0 without memory. Where a point ends a step and begins
 * the next one, its derivatives serve both. */
EXPORT int mbsfmu_go_forward(Run *run, const Forward *forward) {
    Work *const work = calloc(1, sizeof *work);
    const int directions = forward->directions;
    int here = -1;                      /* the point that the arguments are at */
    if (!work) return 0;
    begin(&work->evaluation, run);
    run->failed = -1;
    for (int step = forward->first; step < forward->last; step++) {
        const double half = 0.5 * forward->sizes[step];
        double rates[ROOM(POINT)];
        double *const read_at_begin = ROW(forward->at_begin, step, READ * directions);
        if (here != forward->begins[step]) {
            here = forward->begins[step];
            if (!differentiate(work, run, here)) {
                run->failed = here;
                break;
            }
            read_along(&work->point, forward, read_at_begin);
        } else {
            COPY(read_at_begin, ROW(forward->at_end, step - 1, READ * directions), READ * directions);
        }
        for (int direction = 0; direction < directions; direction++) {
            double *const motion = ROW(forward->motion, direction, POINT);
            rates_along(&work->point, motion, ROW(forward->along, direction, COLUMNS), rates);
            for (int i = 0; i < POINT; i++) motion[i] += half * rates[i];
        }
        here = forward->ends[step];
        if (!differentiate(work, run, here)
            || !factorize_step(work->point.pushed, work->point.flow, half, work->matrix, work->pivots)) {
            run->failed = here;
            break;
        }
        for (int direction = 0; direction < directions; direction++) {
            const double *const along = ROW(forward->along, direction, COLUMNS);
            double *const motion = ROW(forward->motion, direction, POINT), *const by = rates + 2 * FREEDOM;
            for (int i = 0; i < POINT; i++) rates[i] = 0.0;
            add_columns(COLUMNS, FREEDOM, work->point.pushed_by, FREEDOM, along, rates + FREEDOM);
            add_columns(COLUMNS, FLOW, work->point.flow_by, FLOW, along, by);
            for (int i = 0; i < POINT; i++) motion[i] += half * rates[i];
            solve_step(work, half, motion);
        }
        read_along(&work->point, forward, ROW(forward->at_end, step, READ * directions));
    }
    free(work);
    return 1;
}
