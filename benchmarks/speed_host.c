/* A host in C that times fmi2DoStep of one instance: prints microseconds per step, one line for each run.
 *
 * speed_host LIBRARY GUID STEP STEPS RUNS
 */
#define _POSIX_C_SOURCE 199309L

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fmi2.h"

typedef fmi2Component (*Instantiate)(
    fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, int, int
);
typedef fmi2Status (*Setup)(fmi2Component, int, double, double, int, double);
typedef fmi2Status (*Plain)(fmi2Component);
typedef fmi2Status (*DoStep)(fmi2Component, double, double, int);
typedef void (*Free)(fmi2Component);

static void logger(
    fmi2ComponentEnvironment where, fmi2String name, fmi2Status status, fmi2String category, fmi2String text, ...
) {
    (void)where;
    fprintf(stderr, "%s %d %s: %s\n", name, (int)status, category, text);
}

static void *symbol(void *library, const char *name) {
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

int main(int count, char **arguments) {
    const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};
    if (count != 6) return 2;
    const double step = atof(arguments[3]);
    const int steps = atoi(arguments[4]), runs = atoi(arguments[5]);
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "cannot load %s\n", arguments[1]);
        return 1;
    }
    const DoStep do_step = (DoStep)symbol(library, "fmi2DoStep");
    fmi2Component unit =
        ((Instantiate)symbol(library, "fmi2Instantiate"))("unit", fmi2CoSimulation, arguments[2], "", &callbacks, 0, 0);
    if (!unit) return 1;
    for (int run = 0; run < runs; run++) {
        need(((Setup)symbol(library, "fmi2SetupExperiment"))(unit, 0, 0.0, 0.0, 0, 0.0), "setup");
        need(((Plain)symbol(library, "fmi2EnterInitializationMode"))(unit), "enter");
        need(((Plain)symbol(library, "fmi2ExitInitializationMode"))(unit), "exit");
        const double begin = seconds();
        for (int i = 0; i < steps; i++) need(do_step(unit, i * step, step, 1), "step");
        printf("%.6f\n", 1e6 * (seconds() - begin) / steps);
        need(((Plain)symbol(library, "fmi2Reset"))(unit), "reset");
    }
    ((Free)symbol(library, "fmi2FreeInstance"))(unit);
    dlclose(library);
    return 0;
}
