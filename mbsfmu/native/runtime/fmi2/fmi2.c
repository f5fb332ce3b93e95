/* FMI 2.0: its words for what a unit does. */
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

/* -- life cycle and log --------------------------------------------------------------------------------------------- */

EXPORT const char *NAMED(fmi2GetTypesPlatform)(void) { return "default"; }

EXPORT const char *NAMED(fmi2GetVersion)(void) { return "2.0"; }

EXPORT fmi2Component NAMED(fmi2Instantiate)(
    fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *callbacks,
    fmi2Boolean visible, fmi2Boolean logging
) {
    Component *component = calloc(1, sizeof(Component));
    (void)visible;
    if (!component) return NULL;
    if (callbacks) {
        component->logger = callbacks->logger;
        component->environment = callbacks->componentEnvironment;
    }
    component->logged = logging ? EVERY_STATUS : REASONS;
    const int exchanges = type == fmi2ModelExchange, known = exchanges || type == fmi2CoSimulation;
    const char *refused = known ? NULL : "an FMU is for co-simulation or for model exchange, and for nothing else";
    if (begin_life(component, name, guid, resources, "GUID", exchanges, refused)) return component;
    free(component);
    return NULL;
}

EXPORT void NAMED(fmi2FreeInstance)(fmi2Component handle) {
    Component *component = handle;
    if (!component) return;
    fmu_functions.destroy(component->instance);
    free(component);
}

EXPORT fmi2Status NAMED(fmi2SetDebugLogging)(
    fmi2Component handle, fmi2Boolean logging, size_t count, const fmi2String names[]
) {
    WITH_COMPONENT;
    unsigned chosen;
    if (find_categories(component, count, names, &chosen) != fmi2OK) return fmi2Error;
    if (logging) {
        component->logged = chosen;
    } else {
        component->logged &= ~chosen;
    }
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2SetupExperiment)(
    fmi2Component handle, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start, fmi2Boolean has_stop,
    fmi2Real stop
) {
    WITH_COMPONENT;
    return status_of(
        fmu_functions.set_up(component->instance, start, has_stop ? &stop : NULL, has_tolerance ? &tolerance : NULL)
    );
}

EXPORT fmi2Status NAMED(fmi2EnterInitializationMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(fmu_functions.enter_initialization(component->instance));
}

EXPORT fmi2Status NAMED(fmi2ExitInitializationMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(fmu_functions.exit_initialization(component->instance));
}

EXPORT fmi2Status NAMED(fmi2Terminate)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(fmu_functions.terminate(component->instance));
}

EXPORT fmi2Status NAMED(fmi2Reset)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(fmu_functions.reset(component->instance));
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

EXPORT fmi2Status NAMED(fmi2DoStep)(fmi2Component handle, fmi2Real time, fmi2Real step, fmi2Boolean no_return) {
    WITH_COMPONENT;
    const Wishes wishes = {.stays = no_return};
    return status_of(fmu_functions.step(component->instance, time, step, &wishes));
}

EXPORT fmi2Status NAMED(fmi2CancelStep)(fmi2Component handle) {
    WITH_COMPONENT;
    return refuse(component, "there is no step to cancel: steps are done when fmi2DoStep returns");
}

EXPORT fmi2Status NAMED(fmi2GetStatus)(fmi2Component handle, fmi2StatusKind kind, fmi2Status *value) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2DoStepStatus) return refuse(component, "this status is not of type fmi2Status");
    *value = status_of(fmu_functions.last_step(component->instance));
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2GetRealStatus)(fmi2Component handle, fmi2StatusKind kind, fmi2Real *value) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2LastSuccessfulTime) return refuse(component, "this status is not of type Real");
    *value = fmu_functions.time(component->instance);
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2GetIntegerStatus)(
    fmi2Component handle, fmi2StatusKind kind, fmi2Integer *value
) {
    WITH_COMPONENT;
    (void)kind;
    (void)value;
    return refuse(component, "there is no status of type Integer");
}

EXPORT fmi2Status NAMED(fmi2GetBooleanStatus)(
    fmi2Component handle, fmi2StatusKind kind, fmi2Boolean *value
) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2Terminated) return refuse(component, "this status is not of type Boolean");
    *value = 0; /* the unit never ends a simulation by itself */
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2GetStringStatus)(fmi2Component handle, fmi2StatusKind kind, fmi2String *value) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2PendingStatus) return refuse(component, "this status is not of type String");
    *value = "";
    return fmi2OK;
}

/* -- values and derivatives of variables, all of which are of type Real --------------------------------------------- */

EXPORT fmi2Status NAMED(fmi2GetReal)(
    fmi2Component handle, const fmi2ValueReference references[], size_t count, fmi2Real values[]
) {
    WITH_COMPONENT;
    NEED_VALUES(references, count, values, "values");
    return status_of(fmu_functions.get(component->instance, references, count, values));
}

EXPORT fmi2Status NAMED(fmi2SetReal)(
    fmi2Component handle, const fmi2ValueReference references[], size_t count, const fmi2Real values[]
) {
    WITH_COMPONENT;
    NEED_VALUES(references, count, values, "values");
    return status_of(fmu_functions.set(component->instance, references, count, values));
}

EXPORT fmi2Status NAMED(fmi2SetRealInputDerivatives)(
    fmi2Component handle, const fmi2ValueReference references[], size_t count, const fmi2Integer orders[],
    const fmi2Real values[]
) {
    WITH_COMPONENT;
    NEED_VALUES(references, count, values, "derivatives");
    NEED_ALL(count, orders, "derivatives");
    for (size_t k = 0; k < count; k++) {
        if (orders[k] == 1) continue;
        return refuse(component, "derivatives of order %d are refused; only the first is used", orders[k]);
    }
    return status_of(fmu_functions.set_slopes(component->instance, references, count, values));
}

EXPORT fmi2Status NAMED(fmi2GetRealOutputDerivatives)(
    fmi2Component handle, const fmi2ValueReference references[], size_t count, const fmi2Integer orders[],
    fmi2Real values[]
) {
    WITH_COMPONENT;
    NEED_VALUES(references, count, values, "derivatives");
    NEED_ALL(count, orders, "derivatives");
    for (size_t k = 0; k < count; k++) {
        if (orders[k] == 1) continue;
        return refuse(component, "derivatives of order %d are not known; only the first is", orders[k]);
    }
    return status_of(fmu_functions.get_rates(component->instance, references, count, values));
}

EXPORT fmi2Status NAMED(fmi2GetDirectionalDerivative)(
    fmi2Component handle, const fmi2ValueReference unknowns[], size_t unknown_count, const fmi2ValueReference knowns[],
    size_t known_count, const fmi2Real direction[], fmi2Real values[]
) {
    WITH_COMPONENT;
    NEED_VALUES(unknowns, unknown_count, values, "derivatives");
    NEED_VALUES(knowns, known_count, direction, "derivatives");
    return status_of(
        fmu_functions.get_derivatives(
            component->instance, unknowns, unknown_count, knowns, known_count, direction, values
        )
    );
}

/* -- saved states, which FMI 2.0 calls FMU states ------------------------------------------------------------------- */

EXPORT fmi2Status NAMED(fmi2GetFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    return save_state(component, saved);
}

EXPORT fmi2Status NAMED(fmi2SetFMUstate)(fmi2Component handle, fmi2FMUstate saved) {
    WITH_COMPONENT;
    return restore_state(component, saved);
}

EXPORT fmi2Status NAMED(fmi2FreeFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    (void)component;
    return free_state(saved);
}

EXPORT fmi2Status NAMED(fmi2SerializedFMUstateSize)(fmi2Component handle, fmi2FMUstate saved, size_t *size) {
    WITH_COMPONENT;
    (void)saved;
    return give_state_size(component, size);
}

EXPORT fmi2Status NAMED(fmi2SerializeFMUstate)(
    fmi2Component handle, fmi2FMUstate saved, fmi2Byte bytes[], size_t size
) {
    WITH_COMPONENT;
    return serialize_state(component, saved, bytes, size);
}

EXPORT fmi2Status NAMED(fmi2DeSerializeFMUstate)(
    fmi2Component handle, const fmi2Byte bytes[], size_t size, fmi2FMUstate *saved
) {
    WITH_COMPONENT;
    return deserialize_state(component, bytes, size, saved);
}

/* -- functions that some importers must find: of other types, and of model exchange where there is none ------------- */

#define UNSUPPORTED(what) \
    WITH_COMPONENT; \
    return refuse(component, "this FMU has no %s", what)

#define NO_VARIABLES(type) \
    EXPORT fmi2Status NAMED(fmi2Get##type)( \
        fmi2Component handle, const fmi2ValueReference references[], size_t count, fmi2##type values[] \
    ) { \
        (void)references; \
        (void)values; \
        if (count == 0) return fmi2OK; \
        UNSUPPORTED("variables of type " #type); \
    } \
    EXPORT fmi2Status NAMED(fmi2Set##type)( \
        fmi2Component handle, const fmi2ValueReference references[], size_t count, const fmi2##type values[] \
    ) { \
        (void)references; \
        (void)values; \
        if (count == 0) return fmi2OK; \
        UNSUPPORTED("variables of type " #type); \
    }

NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

#if !MODEL_EXCHANGE

#define NO_MODEL_EXCHANGE UNSUPPORTED("model exchange; it is for co-simulation")

EXPORT fmi2Status NAMED(fmi2EnterEventMode)(fmi2Component handle) { NO_MODEL_EXCHANGE; }

EXPORT fmi2Status NAMED(fmi2NewDiscreteStates)(fmi2Component handle, fmi2EventInfo *info) {
    (void)info;
    NO_MODEL_EXCHANGE;
}

EXPORT fmi2Status NAMED(fmi2EnterContinuousTimeMode)(fmi2Component handle) { NO_MODEL_EXCHANGE; }

EXPORT fmi2Status NAMED(fmi2CompletedIntegratorStep)(
    fmi2Component handle, fmi2Boolean no_set, fmi2Boolean *enter_event_mode, fmi2Boolean *terminate
) {
    (void)no_set;
    (void)enter_event_mode;
    (void)terminate;
    NO_MODEL_EXCHANGE;
}

EXPORT fmi2Status NAMED(fmi2SetTime)(fmi2Component handle, fmi2Real time) {
    (void)time;
    NO_MODEL_EXCHANGE;
}

EXPORT fmi2Status NAMED(fmi2SetContinuousStates)(fmi2Component handle, const fmi2Real x[], size_t count) {
    (void)x;
    (void)count;
    NO_MODEL_EXCHANGE;
}

#define NO_VECTOR(name) \
    EXPORT fmi2Status NAMED(name)(fmi2Component handle, fmi2Real values[], size_t count) { \
        (void)values; \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_VECTOR(fmi2GetDerivatives)
NO_VECTOR(fmi2GetEventIndicators)
NO_VECTOR(fmi2GetContinuousStates)
NO_VECTOR(fmi2GetNominalsOfContinuousStates)

#else
#include "fmi2_exchange.c"
#endif
