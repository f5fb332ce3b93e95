/* Adjoint of trapezoidal steps of double-step: w_{n+1} = w_n + h/2 (F_n + F_{n+1}) with w = (z_i, z_i', x, integrals), from
 * the end to the start. mbsfmu/analysis/gradient.py says what follows from what, and does the same in Python. */
#include "model.h"

#include "linear.c"
#include "model_adjoint.c"

#include "run_points.c"

/* Steps of a run, and a scalar of one of what is computed; mbsfmu/native/adjoint_library.py has the same fields. */
typedef struct {
    int first, last;                    /* the steps [first, last) are gone back */
    const int *begins, *ends;           /* points of each step */
    const double *sizes;                /* in s */
    int read;                           /* what the scalar is of … */
    const double *at_begin, *at_end;    /* … and its derivatives by that where each step begins and ends */
    double *adjoint;                    /* dJ/dw behind the last step; becomes that before the first one */
    double *by_parameters;              /* gets dJ/dp added … */
    double *by_inputs;                  /* … and dJ/du at each end of steps, from the start on */
} Back;

/* What is known at a point. */
typedef struct {
    double mass[ROOM(FREEDOM * FREEDOM)];               /* factors of M'' */
    int pivots[ROOM(FREEDOM)];
    double pushed[ROOM(FREEDOM * MOVING)];              /* the derivative of the accelerations by w … */
    double flow[ROOM(FLOW * MOVING)];                   /* … and of the other rates */
    double flow_by_accelerations[ROOM(FLOW * FREEDOM)];
    double by_rates[ROOM(POINT)];                       /* weights of F there … */
    double by_accelerations[ROOM(FREEDOM)];             /* … and of the accelerations by what is read */
} Point;

typedef struct {
    Evaluation evaluation;
    Point point;
    double matrix[ROOM(SOLVED * SOLVED)];
    double by_parameters[ROOM(PARAMETERS)], by_inputs[ROOM(INPUTS)];
} Work;

/* The sizes of all that is handed over, written to at most `room` places; returns how many there are. */
EXPORT int mbsfmu_sizes(int *sizes, int room) {
    const int all[] = {COORDINATES, CONSTRAINTS, FREEDOM, STATES, INTEGRALS, INPUTS, PARAMETERS, COMPUTED};
    const int count = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < count && k < room; k++) sizes[k] = all[k];
    return count;
}

/* Bring the arguments to a completed point, and find the derivatives of F there. */
static int differentiate(Work *work, const Run *run, int index) {
    const Parts *parts = &work->evaluation.instance.parts;
    Point *point = &work->point;
    if (!load_completed(&work->evaluation, run, index)) return 0;
    reduced_slope(parts, point->mass, point->pushed, point->flow);
    if (!factorize(FREEDOM, point->mass, point->pivots)) return 0;
    for (int j = 0; j < MOVING; j++) substitute(FREEDOM, point->mass, point->pivots, point->pushed + FREEDOM * j);
#if RATES_BY_ACCELERATIONS || DRIVEN > 0
    reduced_by_accelerations(parts, point->flow_by_accelerations);
    for (int j = 0; j < MOVING; j++) {
        add_columns(
            FREEDOM, FLOW, point->flow_by_accelerations, FLOW, point->pushed + FREEDOM * j, point->flow + FLOW * j
        );
    }
#endif
    for (int i = 0; i < POINT; i++) point->by_rates[i] = 0.0;
    for (int i = 0; i < FREEDOM; i++) point->by_accelerations[i] = 0.0;
    return 1;
}

/* Add the transpose of dF/dw, times rows of F, to rows of w. */
static void add_transposed(const Point *point, const double *rows, double *sums) {
    for (int j = 0; j < MOVING; j++) {
        const double sum = dot(FREEDOM, point->pushed + FREEDOM * j, rows + FREEDOM)
            + dot(FLOW, point->flow + FLOW * j, rows + 2 * FREEDOM);
        sums[j] += j >= FREEDOM && j < 2 * FREEDOM ? sum + rows[j - FREEDOM] : sum;
    }
}

/* Solve (I - h/2 dF/dw)^T rows = given, in place, with h/2 as `half`: positions and integrals are eliminated. */
static int solve_step(Work *work, double half, double *rows) {
    const Point *point = &work->point;
    double *const matrix = work->matrix, *const right = rows + FREEDOM;
    int pivots[ROOM(SOLVED)];
    if (!factorize_step(point->pushed, point->flow, half, matrix, pivots)) return 0;
    for (int j = 0; j < MOVING; j++) rows[j] += half * dot(INTEGRALS, point->flow + FLOW * j + STATES, rows + FIRST_INTEGRAL);
    for (int j = 0; j < FREEDOM; j++) right[j] += half * rows[j];
    substitute_transposed(SOLVED, matrix, pivots, right);
    for (int j = 0; j < FREEDOM; j++) {
        rows[j] += half * (dot(FREEDOM, point->pushed + FREEDOM * j, right) + dot(STATES, point->flow + FLOW * j, right + FREEDOM));
    }
    return 1;
}

/* Add what the scalar's weight of what is read at the point makes of w, parameters and inputs. */
static void read_back(Work *work, const Back *back, double weight, double *rows, double *by_inputs) {
    const Parts *parts = &work->evaluation.instance.parts;
    Point *point = &work->point;
    double motion[ROOM(POINT)], accelerations[ROOM(FREEDOM)];
    if (weight == 0.0) return;
    parts->by_read[back->read] = weight;
    reduced_read_back(parts, motion, accelerations, work->by_parameters, work->by_inputs);
    parts->by_read[back->read] = 0.0;
    for (int i = 0; i < POINT; i++) rows[i] += motion[i];
    for (int j = 0; j < MOVING; j++) rows[j] += dot(FREEDOM, point->pushed + FREEDOM * j, accelerations);
    for (int i = 0; i < FREEDOM; i++) point->by_accelerations[i] += accelerations[i];
    for (int i = 0; i < PARAMETERS; i++) back->by_parameters[i] += work->by_parameters[i];
    for (int i = 0; i < INPUTS; i++) by_inputs[i] += work->by_inputs[i];
}

/* Add what the weights of F at the point make of parameters and inputs. */
static void pull_back(Work *work, const Back *back, double *by_inputs) {
    const Parts *parts = &work->evaluation.instance.parts;
    const Point *point = &work->point;
    COPY(parts->by_flow, point->by_rates + 2 * FREEDOM, FLOW);
    for (int i = 0; i < FREEDOM; i++) {
        parts->by_load[i] = point->by_rates[FREEDOM + i] + point->by_accelerations[i];
#if RATES_BY_ACCELERATIONS || DRIVEN > 0
        parts->by_load[i] += dot(FLOW, point->flow_by_accelerations + FLOW * i, parts->by_flow);
#endif
    }
    substitute_transposed(FREEDOM, point->mass, point->pivots, parts->by_load);
    reduced_pulled_back(parts, work->by_parameters, work->by_inputs);
    for (int i = 0; i < PARAMETERS; i++) back->by_parameters[i] += work->by_parameters[i];
    for (int i = 0; i < INPUTS; i++) by_inputs[i] += work->by_inputs[i];
}

/* Go back over steps, among which the choice of coordinates stays; returns 0 without memory. Where a point ends a step and
 * begins the next one, its derivatives serve both. */
EXPORT int mbsfmu_go_back(Run *run, const Back *back) {
    Work *const work = calloc(1, sizeof *work);
    double *const rows = back->adjoint;
    double carried = 0.0;               /* weight of what is read where the next step begins, at the same point */
    int here = -1;                      /* the point that the arguments are at */
    if (!work) return 0;
    begin(&work->evaluation, run);
    run->failed = -1;
    for (int step = back->last - 1; step >= back->first; step--) {
        const double half = 0.5 * back->sizes[step];
        double *const inputs_at_end = ROW(back->by_inputs, step + 1, INPUTS);
        double *const inputs_at_begin = ROW(back->by_inputs, step, INPUTS);
        double *const by_rates = work->point.by_rates;
        if (here != back->ends[step]) {
            here = back->ends[step];
            if (!differentiate(work, run, here)) {
                run->failed = here;
                break;
            }
        }
        read_back(work, back, back->at_end[step] + carried, rows, inputs_at_end);
        if (!solve_step(work, half, rows)) {
            run->failed = here;
            break;
        }
        for (int i = 0; i < POINT; i++) by_rates[i] += half * rows[i];
        pull_back(work, back, inputs_at_end);
        here = back->begins[step];
        if (!differentiate(work, run, here)) {
            run->failed = here;
            break;
        }
        for (int i = 0; i < POINT; i++) by_rates[i] = half * rows[i];
        add_transposed(&work->point, by_rates, rows);
        if (step > back->first && back->ends[step - 1] == here) {
            carried = back->at_begin[step];
        } else {
            carried = 0.0;
            read_back(work, back, back->at_begin[step], rows, inputs_at_begin);
            pull_back(work, back, inputs_at_begin);
            here = -1;
        }
    }
    free(work);
    return 1;
}
