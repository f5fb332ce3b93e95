/* A host of the unit's core, without any standard: makes every call in every mode, and a run.
 *
 * core modes: a line `MODE CALL STATUS SENTENCE` for each.
 * core run VARIABLE STEP STEPS: time and value of a variable after each step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static char said[1000];

static void keep_sentence(void *environment, Status status, const char *sentence) {
    snprintf(environment, sizeof said, "%d %s", (int)status, sentence);
}

/* A call with arguments that are right where the mode is. */
typedef struct {
    const char *name;
    Status (*make)(Instance *);
} Call;

static const unsigned first = 0;
static const double nothing = 0.0;

static Status set_up(Instance *instance) { return fmu_functions.set_up(instance, 0.0, NULL, NULL); }
static Status enter(Instance *instance) { return fmu_functions.enter_initialization(instance); }
static Status leave(Instance *instance) { return fmu_functions.exit_initialization(instance); }
static Status step(Instance *instance) { return fmu_functions.step(instance, 0.0, 1e-3, NULL); }
static Status terminate(Instance *instance) { return fmu_functions.terminate(instance); }
static Status set(Instance *instance) { return fmu_functions.set(instance, &first, 1, &nothing); }
static Status set_slopes(Instance *instance) { return fmu_functions.set_slopes(instance, &first, 1, &nothing); }

static Status enter_events(Instance *instance) { return fmu_functions.enter_events(instance); }
static Status exit_events(Instance *instance) { return fmu_functions.exit_events(instance); }
static Status lead(Instance *instance) { return fmu_functions.lead(instance, &first, 1, &nothing, 1e-3); }

static Status pass_events(Instance *instance) {
    int some;
    double next;
    return fmu_functions.pass_events(instance, &some, &next);
}

static Status get(Instance *instance) {
    double value;
    return fmu_functions.get(instance, &first, 1, &value);
}

static Status reset(Instance *instance) {
    fmu_functions.reset(instance);
    return fmu_functions.enter_initialization(instance);
}

static Status save(Instance *instance) {
    void *saved = NULL;
    const Status status = fmu_functions.save(instance, &saved);
    fmu_functions.release(saved);
    return status;
}

static const Call calls[] = {
    {"set_up", set_up}, {"enter", enter},           {"exit", leave}, {"step", step},   {"terminate", terminate},
    {"set", set},       {"set_slopes", set_slopes}, {"get", get},    {"reset", reset}, {"save", save},
    {"lead", lead},     {"enter_events", enter_events}, {"exit_events", exit_events}, {"pass_events", pass_events},
};
static const char *const modes[] = {"created", "initializing", "stepping", "events", "terminated"};
static Status (*const next[])(Instance *) = {enter, leave, enter_events, terminate};

static Instance *created(void) {
    Instance *instance = fmu_functions.create(keep_sentence, said, NULL);
    if (!instance) exit(1);
    return instance;
}

static void all_calls(void) {
    for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++) {
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            Instance *instance = created();
            for (size_t i = 0; i < mode; i++) {
                if (next[i](instance) != DONE) exit(1);
            }
            said[0] = '\0';
            const Status status = calls[k].make(instance);
            printf("%s %s %d %s\n", modes[mode], calls[k].name, (int)status, said);
            fmu_functions.destroy(instance);
        }
    }
}

static void run(unsigned variable, double length, int count) {
    Instance *instance = created();
    if (enter(instance) != DONE || leave(instance) != DONE) exit(1);
    for (int i = 0; i < count; i++) {
        double value;
        if (fmu_functions.step(instance, i * length, length, NULL) != DONE) exit(1);
        if (fmu_functions.get(instance, &variable, 1, &value) != DONE) exit(1);
        printf("%.17g %.17g\n", fmu_functions.time(instance), value);
    }
    fmu_functions.destroy(instance);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "modes") == 0) {
        all_calls();
    } else if (count == 5 && strcmp(arguments[1], "run") == 0) {
        run((unsigned)atoi(arguments[2]), atof(arguments[3]), atoi(arguments[4]));
    } else {
        return 2;
    }
    return 0;
}
