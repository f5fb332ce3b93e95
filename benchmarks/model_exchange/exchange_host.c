/* A host in C for FMUs for model exchange, which are integrated by CVODE of SUNDIALS 7: BDF, a dense Jacobian by CVODE's
 * differences or of directional derivatives of the FMU, new starts at time events.
 *
 * Without a stop time it prints what a solver asks for at the start, in microseconds each: the derivatives at a new
 * point, all columns of their Jacobian at a new point, one column at a known point, and all columns by differences of
 * the derivatives; the least of some runs. The last number is the largest difference of both Jacobians as a share of
 * the largest element. With one it prints the milliseconds of a run, the least of some, its steps, right-hand sides
 * with those of differences, and Jacobians, and the first state at the end; first for differences, then for directional
 * derivatives.
 *
 * exchange_host LIBRARY GUID REPEATS STATE,... DERIVATIVE,... [CORE CVODE STOP TOLERANCE]
 *
 * States and derivatives are value references, CORE and CVODE the libraries of SUNDIALS.
 */
#include "../host.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef fmi2Component (*Instantiate)(
    fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, int, int
);
typedef fmi2Status (*Setup)(fmi2Component, int, double, double, int, double);
typedef fmi2Status (*Plain)(fmi2Component);
typedef fmi2Status (*Update)(fmi2Component, fmi2EventInfo *);
typedef fmi2Status (*GetVector)(fmi2Component, double *, size_t);
typedef fmi2Status (*SetVector)(fmi2Component, const double *, size_t);
typedef fmi2Status (*Directional)(
    fmi2Component, const fmi2ValueReference *, size_t, const fmi2ValueReference *, size_t, const double *, double *
);

enum { RUNS = 7 };
static const double AWAY = 1e-7; /* how far each new point is from the one before, and steps of differences */

static void *library;
static fmi2Component unit;
static SetVector set_states;
static GetVector get_rates;
static Directional directional;
static size_t count;
static double *point, *rates, *moved, *by_columns, *by_differences;
static fmi2ValueReference *states, *derivatives;

static void *room(size_t size) {
    void *found = calloc(size ? size : 1, 1);
    if (!found) exit(1);
    return found;
}

static fmi2ValueReference *references(char *text, size_t *found) {
    fmi2ValueReference *all = room(sizeof *all * (strlen(text) + 1));
    *found = 0;
    for (char *each = strtok(text, ","); each; each = strtok(NULL, ",")) all[(*found)++] = (fmi2ValueReference)atol(each);
    return all;
}

static void go_to_new_point(void) {
    static int turn = 0;
    turn = (turn + 1) % 1024;
    for (size_t i = 0; i < count; i++) moved[i] = point[i] + AWAY * turn / 1024.0;
    need(set_states(unit, moved, count), "set states");
}

static void find_rates(void) {
    go_to_new_point();
    need(get_rates(unit, rates, count), "get derivatives");
}

static void find_column(void) {
    const double one = 1.0;
    need(directional(unit, derivatives, count, states, 1, &one, by_columns), "directional derivative");
}

static void find_columns_here(void) {
    const double one = 1.0;
    for (size_t j = 0; j < count; j++) {
        need(directional(unit, derivatives, count, states + j, 1, &one, by_columns + count * j), "directional derivative");
    }
}

static void find_columns(void) {
    go_to_new_point();
    find_columns_here();
}

static void find_differences(void) {
    need(set_states(unit, point, count), "set states");
    need(get_rates(unit, rates, count), "get derivatives");
    for (size_t j = 0; j < count; j++) {
        const double step = AWAY * fmax(1.0, fabs(point[j]));
        memcpy(moved, point, sizeof *point * count);
        moved[j] += step;
        need(set_states(unit, moved, count), "set states");
        need(get_rates(unit, by_differences + count * j, count), "get derivatives");
        for (size_t i = 0; i < count; i++) {
            by_differences[i + count * j] = (by_differences[i + count * j] - rates[i]) / step;
        }
    }
    need(set_states(unit, point, count), "set states");
}

static double microseconds(void (*what)(void), int repeats) {
    double least = DBL_MAX;
    for (int run = 0; run < RUNS; run++) {
        const double begin = seconds();
        for (int i = 0; i < repeats; i++) what();
        least = fmin(least, (seconds() - begin) / repeats);
    }
    return 1e6 * least;
}

/* -- CVODE -------------------------------------------------------------------------------------------------------- */

typedef int (*Rhs)(double, void *, void *, void *);
typedef int (*Jac)(double, void *, void *, void *, void *, void *, void *, void *);

static void *core, *cvode;
static double *(*data_of)(void *);
static double *(*matrix_of)(void *);
static fmi2Status (*set_time)(fmi2Component, double);

static void *of_sundials(void *from, const char *name) {
    void *found = dlsym(from, name);
    if (!found) {
        fprintf(stderr, "there is no %s in SUNDIALS\n", name);
        exit(1);
    }
    return found;
}

static void need_zero(int code, const char *what) {
    if (code < 0) {
        fprintf(stderr, "%s gives %d\n", what, code);
        exit(1);
    }
}

static int right_side(double time, void *y, void *slope, void *data) {
    (void)data;
    if (set_time(unit, time) != fmi2OK || set_states(unit, data_of(y), count) != fmi2OK) return 1;
    return get_rates(unit, data_of(slope), count) == fmi2OK ? 0 : 1;
}

static int jacobian(double time, void *y, void *fy, void *matrix, void *data, void *a, void *b, void *c) {
    const double one = 1.0;
    double *const columns = matrix_of(matrix);
    (void)fy, (void)data, (void)a, (void)b, (void)c;
    if (set_time(unit, time) != fmi2OK || set_states(unit, data_of(y), count) != fmi2OK) return 1;
    for (size_t j = 0; j < count; j++) {
        if (directional(unit, derivatives, count, states + j, 1, &one, columns + count * j) != fmi2OK) return 1;
    }
    return 0;
}

/* Integrate to the stop time; returns the milliseconds. */
static double run(double stop, double tolerance, int with_derivatives, long found[3]) {
    enum { BDF = 2, ONE_STEP = 2 };
    const Plain enter_events = (Plain)symbol(library, "fmi2EnterEventMode"), go_on = (Plain)symbol(library, "fmi2EnterContinuousTimeMode");
    const Update update = (Update)symbol(library, "fmi2NewDiscreteStates");
    const GetVector get_states = (GetVector)symbol(library, "fmi2GetContinuousStates");
    fmi2Status (*complete)(fmi2Component, int, int *, int *) =
        (fmi2Status (*)(fmi2Component, int, int *, int *))symbol(library, "fmi2CompletedIntegratorStep");
    void *context = NULL;
    fmi2EventInfo events;
    double time = 0.0;
    need(((Setup)symbol(library, "fmi2SetupExperiment"))(unit, 0, 0.0, 0.0, 0, 0.0), "setup");
    need(((Plain)symbol(library, "fmi2EnterInitializationMode"))(unit), "enter");
    need(((Plain)symbol(library, "fmi2ExitInitializationMode"))(unit), "exit");
    need(update(unit, &events), "new discrete states");
    need(go_on(unit), "continuous time");
    need(get_states(unit, point, count), "get states");
    need(((GetVector)symbol(library, "fmi2GetNominalsOfContinuousStates"))(unit, moved, count), "nominals");
    for (size_t i = 0; i < count; i++) moved[i] *= tolerance;
    need_zero(((int (*)(int, void **))of_sundials(core, "SUNContext_Create"))(0, &context), "SUNContext_Create");
    void *(*vector)(long, double *, void *) = (void *(*)(long, double *, void *))of_sundials(cvode, "N_VMake_Serial");
    void *y = vector((long)count, point, context), *absolute = vector((long)count, moved, context);
    void *solver = ((void *(*)(int, void *))of_sundials(cvode, "CVodeCreate"))(BDF, context);
    void *matrix = ((void *(*)(long, long, void *))of_sundials(cvode, "SUNDenseMatrix"))((long)count, (long)count, context);
    void *linear = ((void *(*)(void *, void *, void *))of_sundials(cvode, "SUNLinSol_Dense"))(y, matrix, context);
    data_of = (double *(*)(void *))of_sundials(cvode, "N_VGetArrayPointer");
    matrix_of = (double *(*)(void *))of_sundials(cvode, "SUNDenseMatrix_Data");
    int (*restart)(void *, double, void *) = (int (*)(void *, double, void *))of_sundials(cvode, "CVodeReInit");
    int (*set_stop)(void *, double) = (int (*)(void *, double))of_sundials(cvode, "CVodeSetStopTime");
    int (*step)(void *, double, void *, double *, int) =
        (int (*)(void *, double, void *, double *, int))of_sundials(cvode, "CVode");
    need_zero(((int (*)(void *, Rhs, double, void *))of_sundials(cvode, "CVodeInit"))(solver, right_side, 0.0, y), "CVodeInit");
    need_zero(((int (*)(void *, double, void *))of_sundials(cvode, "CVodeSVtolerances"))(solver, tolerance, absolute), "tolerances");
    need_zero(((int (*)(void *, void *, void *))of_sundials(cvode, "CVodeSetLinearSolver"))(solver, linear, matrix), "solver");
    if (with_derivatives) {
        need_zero(((int (*)(void *, Jac))of_sundials(cvode, "CVodeSetJacFn"))(solver, jacobian), "CVodeSetJacFn");
    }
    static const char *const counters[] = {"CVodeGetNumSteps", "CVodeGetNumRhsEvals", "CVodeGetNumJacEvals"};
    long now[4] = {0};
    found[0] = found[1] = found[2] = 0;
    const double begin = seconds();
    while (time < stop) {
        const double until = events.nextEventTimeDefined && events.nextEventTime < stop ? events.nextEventTime : stop;
        int event = 0, end = 0;
        need_zero(set_stop(solver, until), "CVodeSetStopTime");
        while (time < until && !event) {
            need_zero(step(solver, until, y, &time, ONE_STEP), "CVode");
            need(set_time(unit, time), "set time");
            need(set_states(unit, point, count), "set states");
            need(complete(unit, 1, &event, &end), "completed integrator step");
        }
        for (int i = 0; i < 3; i++) {
            need_zero(((int (*)(void *, long *))of_sundials(cvode, counters[i]))(solver, now), counters[i]);
            found[i] += *now;
        }
        need_zero(((int (*)(void *, long *))of_sundials(cvode, "CVodeGetNumLinRhsEvals"))(solver, now), "evaluations");
        found[1] += *now;
        if (time >= stop) break;
        need(enter_events(unit), "event mode");
        need(update(unit, &events), "new discrete states");
        need(go_on(unit), "continuous time");
        need(get_states(unit, point, count), "get states");
        need_zero(restart(solver, time, y), "CVodeReInit");
    }
    const double spent = 1e3 * (seconds() - begin);
    need(((Plain)symbol(library, "fmi2Reset"))(unit), "reset");
    return spent;
}

static void integrate(char **arguments) {
    const double stop = atof(arguments[2]), tolerance = atof(arguments[3]);
    core = dlopen(arguments[0], RTLD_NOW | RTLD_GLOBAL);
    cvode = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!core || !cvode) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    set_time = (fmi2Status (*)(fmi2Component, double))symbol(library, "fmi2SetTime");
    for (int with_derivatives = 0; with_derivatives < 2; with_derivatives++) {
        double least = DBL_MAX;
        long found[3];
        for (int i = 0; i < RUNS; i++) least = fmin(least, run(stop, tolerance, with_derivatives, found));
        printf("%.6g %ld %ld %ld %.9g\n", least, found[0], found[1], found[2], *point);
    }
}

/* -- the Jacobian alone ---------------------------------------------------------------------------------------------- */

static void time_calls(int repeats) {
    fmi2EventInfo events;
    need(((Setup)symbol(library, "fmi2SetupExperiment"))(unit, 0, 0.0, 0.0, 0, 0.0), "setup");
    need(((Plain)symbol(library, "fmi2EnterInitializationMode"))(unit), "enter");
    need(((Plain)symbol(library, "fmi2ExitInitializationMode"))(unit), "exit");
    need(((Update)symbol(library, "fmi2NewDiscreteStates"))(unit, &events), "new discrete states");
    need(((Plain)symbol(library, "fmi2EnterContinuousTimeMode"))(unit), "continuous time");
    need(((GetVector)symbol(library, "fmi2GetContinuousStates"))(unit, point, count), "get states");
    const double rate = microseconds(find_rates, 10 * repeats);
    const double columns = microseconds(find_columns, repeats);
    const double column = microseconds(find_column, 10 * repeats);
    const double differences = microseconds(find_differences, repeats);
    find_columns_here();
    double largest = 0.0, off = 0.0;
    for (size_t i = 0; i < count * count; i++) {
        largest = fmax(largest, fabs(by_columns[i]));
        off = fmax(off, fabs(by_columns[i] - by_differences[i]));
    }
    printf("%.6g %.6g %.6g %.6g %.3g\n", rate, columns, column, differences, largest > 0.0 ? off / largest : 0.0);
}

int main(int argument_count, char **arguments) {
    const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};
    size_t derivative_count;
    if (argument_count != 6 && argument_count != 10) return 2;
    states = references(arguments[4], &count);
    derivatives = references(arguments[5], &derivative_count);
    if (count != derivative_count) return 2;
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "cannot load %s\n", arguments[1]);
        return 1;
    }
    set_states = (SetVector)symbol(library, "fmi2SetContinuousStates");
    get_rates = (GetVector)symbol(library, "fmi2GetDerivatives");
    directional = (Directional)symbol(library, "fmi2GetDirectionalDerivative");
    unit = ((Instantiate)symbol(library, "fmi2Instantiate"))("unit", fmi2ModelExchange, arguments[2], "", &callbacks, 0, 0);
    if (!unit) return 1;
    point = room(sizeof *point * count);
    rates = room(sizeof *rates * count);
    moved = room(sizeof *moved * count);
    by_columns = room(sizeof *by_columns * count * count);
    by_differences = room(sizeof *by_differences * count * count);
    if (argument_count == 10) {
        integrate(arguments + 6);
    } else {
        time_calls(atoi(arguments[3]));
    }
    return 0;
}
