/* What FMI 3.0 calls an instance: the unit, who is told what it says, and how the host wants its steps. */
#ifndef MBSFMU_FMI3_COMPONENT_H
#define MBSFMU_FMI3_COMPONENT_H

#include <float.h>
#include <math.h>

#include "fmi3.h"

typedef fmi3Status HostStatus;
typedef fmi3LogMessageCallback HostLogger;

#define CALL_LOGGER(component, status, category, text) \
    (component)->logger((component)->environment, status, category, text)
#define MEANING "#" /* a text refers to variables by it */
#define ALWAYS_LOGGED (1u << fmi3Error | 1u << fmi3Fatal)

#include "component.h"
#include "fmi3_variables.h"

/* Where a call during a step comes from. */
typedef enum { NO_UPDATE, BEFORE_INTERNAL_STEP, AFTER_INTERNAL_STEP } Update;

typedef struct {
    Component component;                /* first: a handle points to both */
    fmi3IntermediateUpdateCallback intermediate_update;
    unsigned char *intermediate;        /* which variables the host wants to set and get during steps; NULL where none */
    int uses_events, takes_early_return;
    int exchanges;                      /* whether the host integrates */
    Update update;
    double internal_end;                /* of the internal step that the host is told of */
} Life;

/* What every call needs: an instance, outside of steps. */
#define WITH_INSTANCE \
    Life *life = handle; \
    if (!life) return fmi3Error; \
    Component *component = &life->component; \
    if (life->update != NO_UPDATE) return refuse(component, "this function cannot be called from an intermediate update")

/* The same where it may be called during a step as well. */
#define WITH_INSTANCE_ANYTIME \
    Life *life = handle; \
    if (!life) return fmi3Error; \
    Component *component = &life->component

#endif
