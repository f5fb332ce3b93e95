/* A host written in C: loads a unit, runs it, prints its first variables; saves, restores, resets on the way.
 *
 * host LIBRARY GUID STEP STEPS VARIABLES
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"

#ifdef _WIN32
#include <windows.h>
typedef HMODULE Library;
#define OPEN(path) LoadLibraryA(path)
#define SYMBOL(library, name) ((void *)GetProcAddress(library, name))
#define CLOSE(library) FreeLibrary(library)
#else
#include <dlfcn.h>
typedef void *Library;
#define OPEN(path) dlopen(path, RTLD_NOW | RTLD_LOCAL)
#define SYMBOL(library, name) dlsym(library, name)
#define CLOSE(library) dlclose(library)
#endif

typedef fmi2Component (*Instantiate)(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, int, int);
typedef fmi2Status (*Setup)(fmi2Component, int, double, double, int, double);
typedef fmi2Status (*Plain)(fmi2Component);
typedef fmi2Status (*GetReal)(fmi2Component, const unsigned int *, size_t, double *);
typedef fmi2Status (*DoStep)(fmi2Component, double, double, int);
typedef fmi2Status (*StateCall)(fmi2Component, fmi2FMUstate *);
typedef fmi2Status (*SetState)(fmi2Component, fmi2FMUstate);
typedef void (*Free)(fmi2Component);

static void logger(fmi2ComponentEnvironment where, fmi2String name, fmi2Status status, fmi2String category, fmi2String text, ...) {
    va_list arguments;
    (void)where;
    fprintf(stderr, "%s %d %s: ", name, (int)status, category);
    va_start(arguments, text);
    vfprintf(stderr, text, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static void *symbol(Library library, const char *name) {
    void *found = SYMBOL(library, name);
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

int main(int count, char **arguments) {
    const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};
    if (count != 6) return 2;
    const double step = atof(arguments[3]);
    const int steps = atoi(arguments[4]);
    const size_t variables = (size_t)atoi(arguments[5]);
    unsigned int *references = malloc(variables * sizeof *references);
    double *values = malloc(variables * sizeof *values), *again = malloc(variables * sizeof *again);
    fmi2FMUstate saved = NULL;
    Library library = OPEN(arguments[1]);
    if (!library || !references || !values || !again) {
        fprintf(stderr, "cannot load %s\n", arguments[1]);
        return 1;
    }
    for (size_t i = 0; i < variables; i++) references[i] = (unsigned int)i;
    Instantiate instantiate = (Instantiate)symbol(library, "fmi2Instantiate");
    GetReal get = (GetReal)symbol(library, "fmi2GetReal");
    DoStep do_step = (DoStep)symbol(library, "fmi2DoStep");
    fmi2Component unit = instantiate("unit", fmi2CoSimulation, arguments[2], "", &callbacks, 0, 1);
    if (!unit) return 1;
    for (int life = 0; life < 2; life++) {
        need(((Setup)symbol(library, "fmi2SetupExperiment"))(unit, 0, 0.0, 0.0, 0, 0.0), "setup");
        need(((Plain)symbol(library, "fmi2EnterInitializationMode"))(unit), "enter");
        need(((Plain)symbol(library, "fmi2ExitInitializationMode"))(unit), "exit");
        for (int i = 0; i < steps; i++) {
            need(((StateCall)symbol(library, "fmi2GetFMUstate"))(unit, &saved), "save");
            need(do_step(unit, i * step, step, 1), "step");
            need(get(unit, references, variables, values), "get");
            if (i % 10 == 0) {
                need(((SetState)symbol(library, "fmi2SetFMUstate"))(unit, saved), "restore");
                need(do_step(unit, i * step, step, 1), "step again");
                need(get(unit, references, variables, again), "get again");
                if (memcmp(values, again, variables * sizeof *values) != 0) {
                    fprintf(stderr, "a repeated step differs\n");
                    return 1;
                }
            }
            if (life == 0) continue;
            printf("%.17g", (i + 1) * step);
            for (size_t k = 0; k < variables; k++) printf(",%.17g", values[k]);
            printf("\n");
        }
        if (do_step(unit, -1.0, step, 1) != fmi2Error) return 1;
        if (life == 0) need(((Plain)symbol(library, "fmi2Reset"))(unit), "reset");
    }
    need(((Plain)symbol(library, "fmi2Terminate"))(unit), "terminate");
    need(((StateCall)symbol(library, "fmi2FreeFMUstate"))(unit, &saved), "free the state");
    ((Free)symbol(library, "fmi2FreeInstance"))(unit);
    CLOSE(library);
    free(references);
    free(values);
    free(again);
    return 0;
}
