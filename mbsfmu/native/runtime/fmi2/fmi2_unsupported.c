/* Functions that some importers must find, of types that this FMU has no variables of, and of model exchange where it has
 * none. */

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

#endif
