/* Functions that importers must find, of types that this FMU has no variables of, of clocks, of structural parameters, and
 * of other interfaces. */

#define UNSUPPORTED(what) \
    WITH_INSTANCE; \
    return refuse(component, "this FMU has no %s", what)

/* -- variables of other types ------------------------------------------------------------------------------------- */

#define NO_VARIABLES_OF(access, type, qualifier) \
    EXPORT fmi3Status NAMED(fmi3##access##type)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, qualifier fmi3##type values[], \
        size_t value_count \
    ) { \
        (void)references; \
        (void)values; \
        if (handle && count == 0 && value_count == 0) return fmi3OK; \
        UNSUPPORTED("variables of type " #type); \
    }

#define ONLY_READ
#define NO_VARIABLES(type) NO_VARIABLES_OF(Get, type, ONLY_READ) NO_VARIABLES_OF(Set, type, const)

NO_VARIABLES(Float32)
NO_VARIABLES(Int8)
NO_VARIABLES(UInt8)
NO_VARIABLES(Int16)
NO_VARIABLES(UInt16)
NO_VARIABLES(Int32)
NO_VARIABLES(UInt32)
NO_VARIABLES(Int64)
NO_VARIABLES(UInt64)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

#define NO_BINARIES(access, qualifier) \
    EXPORT fmi3Status NAMED(fmi3##access##Binary)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, qualifier size_t sizes[], \
        qualifier fmi3Binary values[], size_t value_count \
    ) { \
        (void)references; \
        (void)sizes; \
        (void)values; \
        if (handle && count == 0 && value_count == 0) return fmi3OK; \
        UNSUPPORTED("variables of type Binary"); \
    }

NO_BINARIES(Get, ONLY_READ)
NO_BINARIES(Set, const)

/* -- clocks: what is refused of them, all where updates are events of the unit's own ------------------------------------------------ */

#define REFUSE_CLOCKS \
    (void)references; \
    if (handle && count == 0) return fmi3OK; \
    UNSUPPORTED(CLOCKS ? "clocks that can be used so" : "clocks")

#define NO_CLOCK_VALUES(name, type) \
    EXPORT fmi3Status NAMED(name)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, type values[] \
    ) { \
        (void)values; \
        REFUSE_CLOCKS; \
    }
#define NO_CLOCK_PAIRS(name, first, second) \
    EXPORT fmi3Status NAMED(name)( \
        fmi3Instance handle, const fmi3ValueReference references[], size_t count, first values[], second others[] \
    ) { \
        (void)values; \
        (void)others; \
        REFUSE_CLOCKS; \
    }

#if !CLOCKS
NO_CLOCK_VALUES(fmi3GetClock, fmi3Clock)
NO_CLOCK_VALUES(fmi3SetClock, const fmi3Clock)
NO_CLOCK_VALUES(fmi3GetShiftDecimal, fmi3Float64)
NO_CLOCK_PAIRS(fmi3GetIntervalDecimal, fmi3Float64, fmi3IntervalQualifier)
#endif
NO_CLOCK_VALUES(fmi3SetShiftDecimal, const fmi3Float64)
NO_CLOCK_VALUES(fmi3SetIntervalDecimal, const fmi3Float64)
NO_CLOCK_PAIRS(fmi3GetShiftFraction, fmi3UInt64, fmi3UInt64)
NO_CLOCK_PAIRS(fmi3SetShiftFraction, const fmi3UInt64, const fmi3UInt64)
NO_CLOCK_PAIRS(fmi3SetIntervalFraction, const fmi3UInt64, const fmi3UInt64)

EXPORT fmi3Status NAMED(fmi3GetIntervalFraction)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3UInt64 counters[],
    fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[]
) {
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    REFUSE_CLOCKS;
}

EXPORT fmi3Status NAMED(fmi3EvaluateDiscreteStates)(fmi3Instance handle) {
    UNSUPPORTED("evaluation of discrete states apart from fmi3UpdateDiscreteStates");
}

/* -- structural parameters, and dependencies of elements ------------------------------------------------------------ */

EXPORT fmi3Status NAMED(fmi3EnterConfigurationMode)(fmi3Instance handle) { UNSUPPORTED("structural parameters"); }

EXPORT fmi3Status NAMED(fmi3ExitConfigurationMode)(fmi3Instance handle) { UNSUPPORTED("structural parameters"); }

#define NO_DEPENDENCIES UNSUPPORTED("dependencies by element; the model description has those of variables")

EXPORT fmi3Status NAMED(fmi3GetNumberOfVariableDependencies)(
    fmi3Instance handle, fmi3ValueReference reference, size_t *count
) {
    (void)reference;
    (void)count;
    NO_DEPENDENCIES;
}

EXPORT fmi3Status NAMED(fmi3GetVariableDependencies)(
    fmi3Instance handle, fmi3ValueReference dependent, size_t elements[], fmi3ValueReference independents[],
    size_t elements_of_independents[], fmi3DependencyKind kinds[], size_t count
) {
    (void)dependent;
    (void)elements;
    (void)independents;
    (void)elements_of_independents;
    (void)kinds;
    (void)count;
    NO_DEPENDENCIES;
}

/* -- other interfaces ----------------------------------------------------------------------------------------------- */

/* Tell that there is no instance of another interface. */
static fmi3Instance no_instance(fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, const char *other) {
    const Component nobody = {.logger = logger, .environment = environment};
    refuse(&nobody, "this FMU is for co-simulation, not for %s", other);
    return NULL;
}

EXPORT fmi3Instance NAMED(fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3ClockUpdateCallback clock_update,
    fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock
) {
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)clock_update;
    (void)lock;
    (void)unlock;
    return no_instance(environment, logger, "scheduled execution");
}

EXPORT fmi3Status NAMED(fmi3ActivateModelPartition)(
    fmi3Instance handle, fmi3ValueReference clock, fmi3Float64 time
) {
    (void)clock;
    (void)time;
    UNSUPPORTED("scheduled execution; it is for co-simulation");
}

#if !MODEL_EXCHANGE

EXPORT fmi3Instance NAMED(fmi3InstantiateModelExchange)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger
) {
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    return no_instance(environment, logger, "model exchange");
}

#define NO_MODEL_EXCHANGE UNSUPPORTED("model exchange; it is for co-simulation")

EXPORT fmi3Status NAMED(fmi3EnterContinuousTimeMode)(fmi3Instance handle) { NO_MODEL_EXCHANGE; }

EXPORT fmi3Status NAMED(fmi3CompletedIntegratorStep)(
    fmi3Instance handle, fmi3Boolean no_set, fmi3Boolean *enter_event_mode, fmi3Boolean *terminate
) {
    (void)no_set;
    (void)enter_event_mode;
    (void)terminate;
    NO_MODEL_EXCHANGE;
}

EXPORT fmi3Status NAMED(fmi3SetTime)(fmi3Instance handle, fmi3Float64 time) {
    (void)time;
    NO_MODEL_EXCHANGE;
}

#define NO_VECTOR(name, type) \
    EXPORT fmi3Status NAMED(name)(fmi3Instance handle, type values[], size_t count) { \
        (void)values; \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_VECTOR(fmi3SetContinuousStates, const fmi3Float64)
NO_VECTOR(fmi3GetContinuousStates, fmi3Float64)
NO_VECTOR(fmi3GetContinuousStateDerivatives, fmi3Float64)
NO_VECTOR(fmi3GetNominalsOfContinuousStates, fmi3Float64)
NO_VECTOR(fmi3GetEventIndicators, fmi3Float64)

#define NO_COUNT(name) \
    EXPORT fmi3Status NAMED(name)(fmi3Instance handle, size_t *count) { \
        (void)count; \
        NO_MODEL_EXCHANGE; \
    }

NO_COUNT(fmi3GetNumberOfContinuousStates)
NO_COUNT(fmi3GetNumberOfEventIndicators)

#endif
