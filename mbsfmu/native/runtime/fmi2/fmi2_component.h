/* What FMI 2.0 calls a component: an instance of the unit, and who is told what it says. */
#ifndef MBSFMU_FMI2_COMPONENT_H
#define MBSFMU_FMI2_COMPONENT_H

#include "fmi2.h"

typedef fmi2Status HostStatus;
typedef fmi2CallbackLogger HostLogger;

#define CALL_LOGGER(component, status, category, text) \
    (component)->logger((component)->environment, (component)->name, status, category, text)
#define MEANING "%#" /* a text is a format, and refers to variables by # */
#define ALWAYS_LOGGED 0u

#include "component.h"

#define REASONS (1u << fmi2Discard | 1u << fmi2Error | 1u << fmi2Fatal) /* why a call was not done */

/* What every call needs: a component. */
#define WITH_COMPONENT \
    Component *component = handle; \
    if (!component) return fmi2Error

#define NEED_VALUES(references, count, values, what) \
    NEED_ALL(count, references, what); \
    NEED_ALL(count, values, what); \
    if (!are_variables(component, references, count)) return fmi2Error

/* Whether all references are those of variables; a value reference is the variable's index. */
static int are_variables(const Component *component, const fmi2ValueReference references[], size_t count) {
    for (size_t k = 0; k < count; k++) {
        if (references[k] < fmu_functions.variables) continue;
        refuse(component, "there is no Real variable with value reference %u", references[k]);
        return 0;
    }
    return 1;
}

#endif
