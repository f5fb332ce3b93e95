/* Life cycle, log, and steps. */

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
