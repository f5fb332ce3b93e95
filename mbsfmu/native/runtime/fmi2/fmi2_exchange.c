/* Model exchange: its modes, and what a solver asks for. */
#include <float.h>

EXPORT fmi2Status NAMED(fmi2EnterEventMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(exchange_functions.enter_events(component->instance));
}

EXPORT fmi2Status NAMED(fmi2NewDiscreteStates)(fmi2Component handle, fmi2EventInfo *info) {
    WITH_COMPONENT;
    Updated updated;
    NEED(info, "what has happened");
    const fmi2Status status = status_of(exchange_functions.update(component->instance, &updated));
    if (status != fmi2OK) return status;
    info->newDiscreteStatesNeeded = 0; /* one update lets all that is due happen */
    info->terminateSimulation = 0;
    info->nominalsOfContinuousStatesChanged = updated.nominals_changed;
    info->valuesOfContinuousStatesChanged = 1;
    info->nextEventTimeDefined = updated.next < DBL_MAX;
    info->nextEventTime = updated.next < DBL_MAX ? updated.next : 0.0;
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2EnterContinuousTimeMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(exchange_functions.enter_continuous_time(component->instance));
}

EXPORT fmi2Status NAMED(fmi2CompletedIntegratorStep)(
    fmi2Component handle, fmi2Boolean no_set, fmi2Boolean *enter_event_mode, fmi2Boolean *terminate
) {
    WITH_COMPONENT;
    (void)no_set;
    NEED(enter_event_mode, "what comes next");
    NEED(terminate, "what comes next");
    *enter_event_mode = *terminate = 0;
    return status_of(exchange_functions.complete_step(component->instance, enter_event_mode));
}

EXPORT fmi2Status NAMED(fmi2SetTime)(fmi2Component handle, fmi2Real time) {
    WITH_COMPONENT;
    return status_of(exchange_functions.set_time(component->instance, time));
}

EXPORT fmi2Status NAMED(fmi2SetContinuousStates)(fmi2Component handle, const fmi2Real x[], size_t count) {
    WITH_COMPONENT;
    NEED_ALL(count, x, "continuous states");
    return status_of(exchange_functions.set_states(component->instance, x, count));
}

#define VECTOR(name, function, what) \
    EXPORT fmi2Status NAMED(name)(fmi2Component handle, fmi2Real values[], size_t count) { \
        WITH_COMPONENT; \
        NEED_ALL(count, values, what); \
        return status_of(exchange_functions.function(component->instance, values, count)); \
    }

VECTOR(fmi2GetDerivatives, get_rates, "derivatives")
VECTOR(fmi2GetContinuousStates, get_states, "continuous states")
VECTOR(fmi2GetNominalsOfContinuousStates, get_nominals, "magnitudes")
VECTOR(fmi2GetEventIndicators, get_indicators, "event indicators")
