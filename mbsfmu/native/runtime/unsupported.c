/* Functions that some importers must find, of types that this unit has no variables of, and of model exchange. */

#define UNSUPPORTED(what) \
    Instance *instance = INSTANCE; \
    if (instance) report(instance, fmi2Error, "this unit has no %s", what); \
    return fmi2Error

#define NO_VARIABLES(type) \
    FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Get##type)( \
        fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2##type values[] \
    ) { \
        (void)references; \
        (void)values; \
        if (count == 0) return fmi2OK; \
        UNSUPPORTED("variables of type " #type); \
    } \
    FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Set##type)( \
        fmi2Component component, const fmi2ValueReference references[], size_t count, const fmi2##type values[] \
    ) { \
        (void)references; \
        (void)values; \
        if (count == 0) return fmi2OK; \
        UNSUPPORTED("variables of type " #type); \
    }

NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

#define NO_MODEL_EXCHANGE UNSUPPORTED("model exchange; it is for co-simulation")

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterEventMode)(fmi2Component component) { NO_MODEL_EXCHANGE; }

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2NewDiscreteStates)(fmi2Component component, fmi2EventInfo *info) {
    (void)info;
    NO_MODEL_EXCHANGE;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterContinuousTimeMode)(fmi2Component component) { NO_MODEL_EXCHANGE; }

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CompletedIntegratorStep)(
    fmi2Component component, fmi2Boolean no_set, fmi2Boolean *enter_event_mode, fmi2Boolean *terminate
) {
    (void)no_set;
    (void)enter_event_mode;
    (void)terminate;
    NO_MODEL_EXCHANGE;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetTime)(fmi2Component component, fmi2Real time) {
    (void)time;
    NO_MODEL_EXCHANGE;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetContinuousStates)(fmi2Component component, const fmi2Real x[], size_t count) {
    (void)x;
    (void)count;
    NO_MODEL_EXCHANGE;
}

#define NO_VECTOR(name) \
    FMI2_EXPORT fmi2Status FMI2_NAME(name)(fmi2Component component, fmi2Real values[], size_t count) { \
        (void)values; \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_VECTOR(fmi2GetDerivatives)
NO_VECTOR(fmi2GetEventIndicators)
NO_VECTOR(fmi2GetContinuousStates)
NO_VECTOR(fmi2GetNominalsOfContinuousStates)
