/* Model exchange: its instances and modes, and what a solver asks for. */

EXPORT fmi3Instance NAMED(fmi3InstantiateModelExchange)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger
) {
    Life *life = calloc(1, sizeof(Life));
    (void)visible;
    if (!life) return NULL;
    life->component.logger = logger;
    life->component.environment = environment;
    life->component.logged = logging ? EVERY_STATUS : 0;
    life->exchanges = 1;
    if (begin_life(&life->component, name, token, resources, "instantiation token", 1, NULL)) return life;
    free(life);
    return NULL;
}

EXPORT fmi3Status NAMED(fmi3EnterContinuousTimeMode)(fmi3Instance handle) {
    WITH_INSTANCE;
    return status_of(exchange_functions.enter_continuous_time(component->instance));
}

EXPORT fmi3Status NAMED(fmi3CompletedIntegratorStep)(
    fmi3Instance handle, fmi3Boolean no_set, fmi3Boolean *enter_event_mode, fmi3Boolean *terminate
) {
    WITH_INSTANCE;
    int events = 0;
    (void)no_set;
    NEED(enter_event_mode, "what comes next");
    NEED(terminate, "what comes next");
    const Status status = exchange_functions.complete_step(component->instance, &events);
    *enter_event_mode = events != 0;
    *terminate = false; /* the unit never ends a simulation by itself */
    return status_of(status);
}

EXPORT fmi3Status NAMED(fmi3SetTime)(fmi3Instance handle, fmi3Float64 time) {
    WITH_INSTANCE;
    return status_of(exchange_functions.set_time(component->instance, time));
}

EXPORT fmi3Status NAMED(fmi3SetContinuousStates)(fmi3Instance handle, const fmi3Float64 values[], size_t count) {
    WITH_INSTANCE;
    NEED_ALL(count, values, "continuous states");
    return status_of(exchange_functions.set_states(component->instance, values, count));
}

#define VECTOR(name, function, what) \
    EXPORT fmi3Status NAMED(name)(fmi3Instance handle, fmi3Float64 values[], size_t count) { \
        WITH_INSTANCE; \
        NEED_ALL(count, values, what); \
        return status_of(exchange_functions.function(component->instance, values, count)); \
    }

VECTOR(fmi3GetContinuousStates, get_states, "continuous states")
VECTOR(fmi3GetContinuousStateDerivatives, get_rates, "derivatives")
VECTOR(fmi3GetNominalsOfContinuousStates, get_nominals, "magnitudes")
VECTOR(fmi3GetEventIndicators, get_indicators, "event indicators")

EXPORT fmi3Status NAMED(fmi3GetNumberOfContinuousStates)(fmi3Instance handle, size_t *count) {
    WITH_INSTANCE;
    NEED(count, "how many continuous states there are");
    *count = exchange_functions.states;
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3GetNumberOfEventIndicators)(fmi3Instance handle, size_t *count) {
    WITH_INSTANCE;
    NEED(count, "how many event indicators there are");
    *count = exchange_functions.indicators;
    return fmi3OK;
}
