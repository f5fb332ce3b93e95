/* A host in C that times what a solver asks of an FMU for model exchange, in microseconds each:
 *
 * the derivatives at a new point, all columns of their Jacobian at a new point, one column at a known point, and all
 * columns by differences of the derivatives; the least of some runs. The last number is the largest difference of both
 * Jacobians as a share of the largest element.
 *
 * jacobian_host LIBRARY GUID REPEATS STATE,... DERIVATIVE,...   (value references)
 */
#define _POSIX_C_SOURCE 199309L

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmi2.h"

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

static void logger(
    fmi2ComponentEnvironment where, fmi2String name, fmi2Status status, fmi2String category, fmi2String text, ...
) {
    (void)where;
    fprintf(stderr, "%s %d %s: %s\n", name, (int)status, category, text);
}

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "there is no %s\n", name);
        exit(1);
    }
    return found;
}

static void need(fmi2Status status, const char *what) {
    if (status != fmi2OK) {
        fprintf(stderr, "%s gives %d\n", what, (int)status);
        exit(1);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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

int main(int argument_count, char **arguments) {
    const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};
    fmi2EventInfo events;
    size_t derivative_count;
    if (argument_count != 6) return 2;
    const int repeats = atoi(arguments[3]);
    states = references(arguments[4], &count);
    derivatives = references(arguments[5], &derivative_count);
    if (count != derivative_count) return 2;
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "cannot load %s\n", arguments[1]);
        return 1;
    }
    set_states = (SetVector)symbol("fmi2SetContinuousStates");
    get_rates = (GetVector)symbol("fmi2GetDerivatives");
    directional = (Directional)symbol("fmi2GetDirectionalDerivative");
    unit = ((Instantiate)symbol("fmi2Instantiate"))("unit", fmi2ModelExchange, arguments[2], "", &callbacks, 0, 0);
    if (!unit) return 1;
    need(((Setup)symbol("fmi2SetupExperiment"))(unit, 0, 0.0, 0.0, 0, 0.0), "setup");
    need(((Plain)symbol("fmi2EnterInitializationMode"))(unit), "enter");
    need(((Plain)symbol("fmi2ExitInitializationMode"))(unit), "exit");
    need(((Update)symbol("fmi2NewDiscreteStates"))(unit, &events), "new discrete states");
    need(((Plain)symbol("fmi2EnterContinuousTimeMode"))(unit), "continuous time");
    point = room(sizeof *point * count);
    rates = room(sizeof *rates * count);
    moved = room(sizeof *moved * count);
    by_columns = room(sizeof *by_columns * count * count);
    by_differences = room(sizeof *by_differences * count * count);
    need(((GetVector)symbol("fmi2GetContinuousStates"))(unit, point, count), "get states");
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
    return 0;
}
