/* A component: its instance, what it says, and its life. Included once, after exchange.c. */
#ifndef MBSFMU_COUPLED_COMPONENTS_H
#define MBSFMU_COUPLED_COMPONENTS_H

#include <stdarg.h>

#include "component_library.h"
#include "coupled_system.h"
#include "system_tables.h"

enum { DISCARDED_STEP = 2, FATAL = 4, LAST_SUCCESSFUL_TIME = 2, TERMINATED = 3 };
enum { LONGEST_SENTENCE = 640 };

typedef void (*LogFmi2)(void *, const char *, int, const char *, const char *, ...);

struct CallbacksFmi2 {
    LogFmi2 log;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
};

struct Unit {
    struct Ramp ramp; /* first: the environment that an FMU of FMI 3.0 hands to both of its callbacks */
    const struct ComponentSpec *spec;
    struct System *system;
    struct CallbacksFmi2 callbacks;
    void *library, *component, *kept;
    struct Clock clock;
    struct Report report;
    struct Port entries, outputs, start_entries, start_outputs;
    int is_stepping, is_fatal;
    char said[400];
};

/* A function of a component, for the number that the exchange knows it by. */
struct Call {
    struct Unit *unit;
    const char *function;
};

/* Where a run is, in s: communication points are `start + k * step`, of which `steps` were passed, and ends of steps of the
 * importer between them. An importer that adds up its times is elsewhere by round-off. */
struct Place {
    double start, steps, time, reached;     /* `reached` is the time as the importer has it */
};

struct System {
    Warned told;
    void *environment;
    char resources[LONGEST_PATH], reason[LONGEST_SENTENCE];
    struct Unit *units;
    struct Call *calls;
    size_t call_count, call_room;
    void **blocks;
    size_t block_count, block_room;
    struct Exchange exchange;
    struct Member *members;
    double *start_values, *changing;
    size_t changing_count;
    double *given;            /* values of parameters and inputs, then whether they were set; in `changing` */
    double *before;           /* the same before they were set */
    struct Place place;
    double point[1];
    int is_whole, is_initializing, is_stepping, is_evaluated, has_failed;
    struct Saved *saved;
};

/* Say why something fails; returns 0. */
static int fails(struct System *system, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(system->reason, sizeof system->reason, format, arguments);
    va_end(arguments);
    return 0;
}

/* Memory that is there as long as the system; NULL where there is none. */
static void *room_for(struct System *system, size_t count, size_t size)
{
    if (system->block_count == system->block_room) {
        size_t room = 2 * system->block_room + 64;
        void **blocks = realloc(system->blocks, room * sizeof *blocks);
        if (!blocks)
            return NULL;
        system->blocks = blocks;
        system->block_room = room;
    }
    void *block = calloc(count ? count : 1, size);
    system->blocks[system->block_count] = block;
    system->block_count += block != NULL;
    return block;
}

/* -- what a component says ------------------------------------------------------------------------------------------ */

static void hear(struct Unit *unit, int status, const char *category, const char *text)
{
    const int remark = status < WARNING && category && strcmp(category, "logRemark") == 0;
    if (status < WARNING && !remark)
        return;
    if (!remark)
        snprintf(unit->said, sizeof unit->said, "%s", text);
    if ((remark || status == WARNING) && unit->system->told) {
        char sentence[LONGEST_SENTENCE];
        const char *name = unit->spec->name;
        const size_t length = strlen(name);
        const int named = strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0;
        snprintf(sentence, sizeof sentence, "%s%s%s", named ? "" : name, named ? "" : ": ", text);
        unit->system->told(unit->system->environment, sentence, remark);
    }
}

static void hear_fmi2(void *environment, const char *name, int status, const char *category, const char *format, ...)
{
    char text[400];
    va_list arguments;
    (void)name;
    if (!environment)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format ? format : "", arguments);
    va_end(arguments);
    hear(environment, status, category, text);
}

static void hear_fmi3(void *environment, int status, const char *category, const char *text)
{
    if (environment)
        hear(environment, status, category, text ? text : "");
}

/* Whether a function of a component did what it should; else the reason is told. */
static int is_done(struct Unit *unit, const char *function, int status)
{
    static const char *const words[] = {"OK", "warning", "discard", "error", "fatal", "pending"};
    if (status <= WARNING)
        return 1;
    unit->is_fatal |= status == FATAL;
    unit->system->has_failed |= unit->is_fatal;
    fails(unit->system, "%s at t = %.9g s: %s gives %s: %s", unit->spec->name, unit->clock.time, function,
          status <= 5 ? words[status] : "an unknown status", unit->said[0] ? unit->said : "no reason given");
    unit->said[0] = '\0';
    return 0;
}

/* Return a function of a component; NULL, and the reason told, where its library has none of the name. */
static Function need(struct Unit *unit, const char *name)
{
    Function function = function_of(unit->library, name);
    if (!function)
        fails(unit->system, "the library of %s has no function %s", unit->spec->name, name);
    return function;
}

/* Call a function of a component that takes the component alone. */
static int call(struct Unit *unit, const char *name)
{
    int (*function)(void *) = (int (*)(void *))need(unit, name);
    if (!function)
        return 0;
    int done = is_done(unit, name, function(unit->component));
    restore_environment(&unit->system->exchange, 0);
    return done;
}

/* Give a function of a component the number that the exchange knows it by. */
static int number_of(struct Unit *unit, const char *function)
{
    struct System *system = unit->system;
    if (system->call_count == system->call_room) {
        size_t room = 2 * system->call_room + 64;
        struct Call *calls = realloc(system->calls, room * sizeof *calls);
        if (!calls)
            return -1;
        system->calls = calls;
        system->call_room = room;
    }
    system->calls[system->call_count] = (struct Call){unit, function};
    return (int)system->call_count++;
}

/* -- life ------------------------------------------------------------------------------------------------------------ */

static int instantiate_fmi2(struct Unit *unit, const char *folder)
{
    typedef void *(*Make)(const char *, int, const char *, const char *, const struct CallbacksFmi2 *, int, int);
    char resources[LONGEST_PATH], uri[3 * LONGEST_PATH];
    const int for_co_simulation = 1, visible = 0, logs = 1;
    Make make = (Make)need(unit, "fmi2Instantiate");
    if (!make)
        return 0;
    snprintf(resources, sizeof resources, "%s%cresources", folder, SEPARATOR);
    if (!encode_uri(resources, uri, sizeof uri))
        return fails(unit->system, "the path of %s is too long", unit->spec->name);
    unit->callbacks = (struct CallbacksFmi2){hear_fmi2, calloc, free, NULL, unit};
    unit->component = make(unit->spec->name, for_co_simulation, unit->spec->guid, uri, &unit->callbacks, visible, logs);
    return unit->component != NULL;
}

static int instantiate_fmi3(struct Unit *unit, const char *folder)
{
    typedef void (*Log)(void *, int, const char *, const char *);
    typedef void (*Update)(void *, double, bool, bool, bool, bool, bool *, double *);
    typedef void *(*Make)(const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t,
                          void *, Log, Update);
    const struct ComponentSpec *spec = unit->spec;
    const bool visible = false, logs = true, comes_back_early = true;
    char resources[LONGEST_PATH];
    Make make = (Make)need(unit, "fmi3InstantiateCoSimulation");
    if (!make)
        return 0;
    snprintf(resources, sizeof resources, "%s%cresources%c", folder, SEPARATOR, SEPARATOR);
    unit->ramp.clock = &unit->clock;
    unit->ramp.report = &unit->report;
    unit->component = make(spec->name, spec->guid, resources, visible, logs, spec->has_events != 0, comes_back_early,
                           spec->intermediate, spec->intermediate_count, &unit->ramp, hear_fmi3,
                           spec->intermediate_count ? mbsfmu_set_within : NULL);
    return unit->component != NULL;
}

static void *library_of(const struct ComponentSpec *spec, const char *folder, char *reason, size_t room)
{
#if defined(LINKED_COMPONENTS)
    (void)folder;
    return load_library(spec->folder, reason, room);
#else
    char path[LONGEST_PATH + 512];
    snprintf(path, sizeof path, "%s%cbinaries%c%s%c%s", folder, SEPARATOR, SEPARATOR,
             spec->version == 2 ? PLATFORM_OF_FMI2 : PLATFORM_OF_FMI3, SEPARATOR, spec->library);
    return load_library(path, reason, room);
#endif
}

/* Load a component and make its instance. */
static int begin_life_of(struct Unit *unit)
{
    const struct ComponentSpec *spec = unit->spec;
    char folder[LONGEST_PATH], reason[300];
    int length = snprintf(folder, sizeof folder, "%s%c%s", unit->system->resources, SEPARATOR, spec->folder);
    if (length >= LONGEST_PATH - 64)
        return fails(unit->system, "the path of %s is too long", spec->name);
    if (!unit->library && !(unit->library = library_of(spec, folder, reason, sizeof reason)))
        return fails(unit->system, "the library of %s cannot be loaded: %s", spec->name, reason);
    unit->report.next_event = INFINITY;
    unit->report.event = unit->report.ends = unit->report.early = false;
    unit->report.trouble = 0;
    unit->ramp.component = NULL;
    unit->is_stepping = unit->is_fatal = 0;
    unit->clock = (struct Clock){0};
    unit->said[0] = unit->system->reason[0] = '\0';
    if (spec->version == 2 ? instantiate_fmi2(unit, folder) : instantiate_fmi3(unit, folder))
        return 1;
    return unit->system->reason[0] ? 0
                                   : fails(unit->system, "%s cannot be instantiated: %s", spec->name,
                                           unit->said[0] ? unit->said : "no reason given");
}

static void free_state_of(struct Unit *unit, void **state)
{
    typedef int (*Free)(void *, void **);
    Free function = (Free)function_of(unit->library, unit->spec->version == 2 ? "fmi2FreeFMUstate" : "fmi3FreeFMUState");
    if (*state && unit->component && !unit->is_fatal && function)
        function(unit->component, state);
    *state = NULL;
}

/* Free the instance of a component; after a fatal error the standard forbids it. */
static void end_life_of(struct Unit *unit)
{
    typedef int (*End)(void *);
    const int is_old = unit->spec->version == 2;
    if (!unit->component)
        return;
    free_state_of(unit, &unit->kept);
    if (!unit->is_fatal) {
        End end = (End)function_of(unit->library, is_old ? "fmi2Terminate" : "fmi3Terminate");
        void (*release)(void *) =
            (void (*)(void *))function_of(unit->library, is_old ? "fmi2FreeInstance" : "fmi3FreeInstance");
        if (unit->is_stepping && end)
            end(unit->component);
        if (release)
            release(unit->component);
    }
    unit->component = NULL;
}

/* -- states ---------------------------------------------------------------------------------------------------------- */

static int save_unit(struct Unit *unit, void **state)
{
    typedef int (*Get)(void *, void **);
    const char *name = unit->spec->version == 2 ? "fmi2GetFMUstate" : "fmi3GetFMUState";
    Get get = (Get)need(unit, name);
    return get && is_done(unit, name, get(unit->component, state));
}

static int restore_unit(struct Unit *unit, void *state, double next_event)
{
    typedef int (*Set)(void *, void *);
    const char *name = unit->spec->version == 2 ? "fmi2SetFMUstate" : "fmi3SetFMUState";
    Set set = (Set)need(unit, name);
    unit->report.next_event = next_event;
    unit->report.event = unit->report.ends = false;
    return set && is_done(unit, name, set(unit->component, state));
}

#endif
