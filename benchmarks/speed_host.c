/* A host in C that times fmi2DoStep of one instance: prints microseconds per step, one line for each run; with the word
 * each behind it one line for each step, the least of all runs.
 *
 * speed_host LIBRARY GUID STEP STEPS RUNS [each]
 */
#include "host.h"

#include <float.h>
#include <string.h>

typedef fmi2Component (*Instantiate)(
    fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, int, int
);
typedef fmi2Status (*Setup)(fmi2Component, int, double, double, int, double);
typedef fmi2Status (*Plain)(fmi2Component);
typedef fmi2Status (*DoStep)(fmi2Component, double, double, int);
typedef void (*Free)(fmi2Component);

int main(int count, char **arguments) {
    const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};
    const int each = count == 7 && strcmp(arguments[6], "each") == 0;
    if (count != 6 && !each) return 2;
    const double step = atof(arguments[3]);
    const int steps = atoi(arguments[4]), runs = atoi(arguments[5]);
    double *const least = malloc(sizeof(double) * (size_t)steps);
    if (!least) return 1;
    for (int i = 0; i < steps; i++) least[i] = DBL_MAX;
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
        for (int i = 0; i < steps; i++) {
            const double before = each ? seconds() : 0.0;
            need(do_step(unit, i * step, step, 1), "step");
            const double spent = each ? seconds() - before : 0.0;
            if (spent < least[i]) least[i] = spent;
        }
        if (!each) printf("%.6f\n", 1e6 * (seconds() - begin) / steps);
        need(((Plain)symbol(library, "fmi2Reset"))(unit), "reset");
    }
    for (int i = 0; each && i < steps; i++) printf("%.6f\n", 1e6 * least[i]);
    free(least);
    ((Free)symbol(library, "fmi2FreeInstance"))(unit);
    dlclose(library);
    return 0;
}
