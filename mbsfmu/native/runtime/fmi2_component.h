/* What FMI 2.0 calls a component: an instance of the unit, and who is told what it says. */
#ifndef MBSFMU_FMI2_COMPONENT_H
#define MBSFMU_FMI2_COMPONENT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"
#include "unit.h"
#include "visibility.h"

static const char *const categories[] = {
    "logAll", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal",
};
#define CATEGORIES (sizeof categories / sizeof *categories)
#define EVERY_STATUS ((1u << CATEGORIES) - 1u)
#define REASONS (1u << fmi2Discard | 1u << fmi2Error | 1u << fmi2Fatal) /* why a call was not done */

typedef struct {
    Instance *instance;
    fmi2CallbackLogger logger;
    fmi2ComponentEnvironment environment;
    unsigned logged;                    /* which statuses are logged, a bit each */
    char name[128];
} Component;

static fmi2Status status_of(Status status) {
    switch (status) {
        case DONE: return fmi2OK;
        case DONE_WITH_WARNING: return fmi2Warning;
        case DISCARDED: return fmi2Discard;
        case REFUSED: return fmi2Error;
    }
    return fmi2Fatal;
}

/* Copy a message with every % and # doubled: to the logger it is a format, in which both mean something, and there may
 * be text of the host in it. */
static void escape(char *to, size_t room, const char *from) {
    size_t k = 0;
    for (; *from && k + 2 < room; from++) {
        if (*from == '%' || *from == '#') to[k++] = *from;
        to[k++] = *from;
    }
    to[k] = '\0';
}

static void log_message(const Component *component, fmi2Status status, const char *message) {
    char escaped[800];
    if (!component->logger || !(component->logged & 1u << status)) return;
    escape(escaped, sizeof escaped, message); /* formatted here: not every importer formats */
    component->logger(component->environment, component->name, status, categories[status], escaped);
}

/* The logger of the unit. */
static void log_sentence(void *component, Status status, const char *sentence) {
    log_message(component, status_of(status), sentence);
}

/* Log why a call of the host is refused; returns fmi2Error. */
static fmi2Status refuse(const Component *component, const char *format, ...) {
    char message[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log_message(component, fmi2Error, message);
    return fmi2Error;
}

/* What every call needs: a component. */
#define WITH_COMPONENT \
    Component *component = handle; \
    if (!component) return fmi2Error

/* What a call cannot do without: a place that the host gives. */
#define NEED(pointer, what) \
    if (!(pointer)) return refuse(component, "there is no place for %s: the pointer is NULL", what)
#define NEED_ALL(count, pointer, what) \
    if ((count) > 0 && !(pointer)) return refuse(component, "there is no place for %s: a pointer is NULL", what)
#define NEED_VALUES(references, count, values, what) \
    NEED_ALL(count, references, what); \
    NEED_ALL(count, values, what); \
    if (!are_variables(component, references, count)) return fmi2Error

/* Whether all references are those of variables; a value reference is the variable's index. */
static int are_variables(const Component *component, const fmi2ValueReference references[], size_t count) {
    for (size_t k = 0; k < count; k++) {
        if (references[k] < unit_functions.variables) continue;
        refuse(component, "there is no Real variable with value reference %u", references[k]);
        return 0;
    }
    return 1;
}

#endif
