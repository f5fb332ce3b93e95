/* What the layers of all versions of the FMI share: an instance of the unit, who is told what it says, and what a call of a
 * host is checked for. A layer says before it includes this:
 *   HostStatus, HostLogger: its types of a status and of a logger; the values of statuses are those of all versions,
 *   CALL_LOGGER(component, status, category, text): how its logger is called,
 *   MEANING: characters that mean something in a text for it; doubled they stand for themselves,
 *   ALWAYS_LOGGED: statuses that are logged whatever the host chooses, a bit each. */
#ifndef MBSFMU_COMPONENT_H
#define MBSFMU_COMPONENT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "visibility.h"

enum { LOGGED_OK, LOGGED_WARNING, LOGGED_DISCARD, LOGGED_ERROR, LOGGED_FATAL, LOGGED_REMARK };

static const char *const categories[] = {
    "logAll", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal", "logRemark",
};
#define CATEGORIES (sizeof categories / sizeof *categories)
#define EVERY_STATUS ((1u << CATEGORIES) - 1u)

typedef struct {
    Instance *instance;
    HostLogger logger;
    void *environment;
    unsigned logged;                    /* which statuses are logged, a bit each */
    char name[128];
} Component;

static HostStatus status_of(Status status) {
    switch (status) {
        case DONE:
        case NOTED: return (HostStatus)LOGGED_OK;
        case DONE_WITH_WARNING: return (HostStatus)LOGGED_WARNING;
        case DISCARDED: return (HostStatus)LOGGED_DISCARD;
        case REFUSED: return (HostStatus)LOGGED_ERROR;
    }
    return (HostStatus)LOGGED_FATAL;
}

/* Copy a message with all that means something to the logger doubled: there may be text of the host in it. */
static void escape(char *to, size_t room, const char *from) {
    size_t k = 0;
    for (; *from && k + 2 < room; from++) {
        if (strchr(MEANING, *from)) to[k++] = *from;
        to[k++] = *from;
    }
    to[k] = '\0';
}

static void log_in_category(const Component *component, HostStatus status, unsigned category, const char *message) {
    char escaped[800];
    if (!component->logger || !((component->logged | ALWAYS_LOGGED) & 1u << category)) return;
    escape(escaped, sizeof escaped, message); /* formatted here: not every importer formats */
    CALL_LOGGER(component, status, categories[category], escaped);
}

static void log_message(const Component *component, HostStatus status, const char *message) {
    log_in_category(component, status, (unsigned)status, message);
}

/* The logger of the unit. */
static void log_sentence(void *component, Status status, const char *sentence) {
    log_in_category(component, status_of(status), status == NOTED ? LOGGED_REMARK : (unsigned)status_of(status), sentence);
}

/* Log why a call of the host is refused; returns the status of an error. */
static HostStatus refuse(const Component *component, const char *format, ...) {
    char message[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log_message(component, (HostStatus)LOGGED_ERROR, message);
    return (HostStatus)LOGGED_ERROR;
}

/* What a call cannot do without: a place that the host gives. */
#define NEED(pointer, what) \
    if (!(pointer)) return refuse(component, "there is no place for %s: the pointer is NULL", what)
#define NEED_ALL(count, pointer, what) \
    if ((count) > 0 && !(pointer)) return refuse(component, "there is no place for %s: a pointer is NULL", what)
#define NEED_STATE(saved) \
    if (!(saved)) return refuse(component, "there is no saved state")
#define NEED_PLACE(saved) \
    if (!(saved)) return refuse(component, "there is no place for a saved state")

/* Find the statuses of some categories, a bit each; all where none is named. */
static HostStatus find_categories(const Component *component, size_t count, const char *const names[], unsigned *chosen) {
    *chosen = count == 0 ? EVERY_STATUS : 0;
    if (count > 0 && !names) return refuse(component, "there are no names of log categories: the pointer is NULL");
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < CATEGORIES && !(names[i] && strcmp(names[i], categories[k]) == 0)) k++;
        if (k == CATEGORIES) return refuse(component, "there is no log category '%.200s'", names[i] ? names[i] : "");
        *chosen |= k == 0 ? EVERY_STATUS : 1u << k;
    }
    return (HostStatus)LOGGED_OK;
}

static Instance *create_instance(Component *component, int exchanges, const char *resources) {
#if MODEL_EXCHANGE
    if (exchanges) return exchange_functions.create(log_sentence, component);
#else
    (void)exchanges;
#endif
    return fmu_functions.create(log_sentence, component, resources);
}

/* Give a component its unit, where the host knows which one it is and names it; returns whether it has. */
static int begin_life(
    Component *component, const char *name, const char *identity, const char *resources, const char *word, int exchanges,
    const char *refused
) {
    snprintf(component->name, sizeof component->name, "%s", name ? name : "");
    if (!identity || strcmp(identity, fmu_functions.identity) != 0) {
        refuse(component, "the %s is %s; this FMU has %s", word, identity ? identity : "missing", fmu_functions.identity);
    } else if (!name || name[strspn(name, " \t\r\n")] == '\0') {
        refuse(component, "the instance needs a name");
    } else if (exchanges && !MODEL_EXCHANGE) {
        refuse(component, "this FMU is for co-simulation, not for model exchange");
    } else if (!exchanges && !CO_SIMULATION) {
        refuse(component, "this FMU is for model exchange, not for co-simulation");
    } else if (refused) {
        refuse(component, "%s", refused);
    } else {
        component->instance = create_instance(component, exchanges, resources);
        if (!component->instance) refuse(component, "there is no instance");
    }
    return component->instance != NULL;
}

/* -- saved states ------------------------------------------------------------------------------------------------- */

static HostStatus save_state(Component *component, void **saved) {
    NEED_PLACE(saved);
    return status_of(fmu_functions.save(component->instance, saved));
}

static HostStatus restore_state(Component *component, const void *saved) {
    NEED_STATE(saved);
    return status_of(fmu_functions.restore(component->instance, saved));
}

static HostStatus free_state(void **saved) {
    if (saved) {
        fmu_functions.release(*saved);
        *saved = NULL;
    }
    return (HostStatus)LOGGED_OK;
}

static HostStatus give_state_size(const Component *component, size_t *size) {
    NEED(size, "the size of a saved state");
    if (fmu_functions.saved_size == 0) return refuse(component, "states of this FMU are not turned into bytes");
    *size = fmu_functions.saved_size;
    return (HostStatus)LOGGED_OK;
}

static HostStatus serialize_state(Component *component, const void *saved, char *bytes, size_t size) {
    NEED_STATE(saved);
    NEED(bytes, "the bytes of a saved state");
    return status_of(fmu_functions.serialize(component->instance, saved, bytes, size));
}

static HostStatus deserialize_state(Component *component, const char *bytes, size_t size, void **saved) {
    NEED(bytes, "the bytes of a saved state");
    NEED_PLACE(saved);
    return status_of(fmu_functions.deserialize(component->instance, bytes, size, saved));
}

#endif
