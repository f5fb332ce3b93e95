/* Life cycle, log, and steps. */

EXPORT const char *NAMED(fmi2GetTypesPlatform)(void) { return "default"; }

EXPORT const char *NAMED(fmi2GetVersion)(void) { return "2.0"; }

/* Why there is no instance of that name and type; NULL where there is one. */
static const char *objection_to(fmi2String name, fmi2Type type) {
    if (type != fmi2CoSimulation) return "this unit is for co-simulation, not for model exchange";
    if (!name || !*name) return "the instance needs a name";
    return NULL;
}

EXPORT fmi2Component NAMED(fmi2Instantiate)(
    fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *callbacks,
    fmi2Boolean visible, fmi2Boolean logging
) {
    Component *component = calloc(1, sizeof(Component));
    (void)resources; /* everything is in the binary */
    (void)visible;
    if (!component) return NULL;
    if (callbacks) {
        component->logger = callbacks->logger;
        component->environment = callbacks->componentEnvironment;
    }
    component->logged = logging ? EVERY_STATUS : REASONS;
    snprintf(component->name, sizeof component->name, "%s", name ? name : "");
    const char *refused = objection_to(name, type), *identity = unit_functions.identity;
    if (!guid || strcmp(guid, identity) != 0) {
        refuse(component, "the GUID is %s; this unit has %s", guid ? guid : "missing", identity);
    } else if (refused) {
        refuse(component, "%s", refused);
    } else {
        component->instance = unit_functions.create(log_sentence, component);
    }
    if (component->instance) return component;
    free(component);
    return NULL;
}

EXPORT void NAMED(fmi2FreeInstance)(fmi2Component handle) {
    Component *component = handle;
    if (!component) return;
    unit_functions.destroy(component->instance);
    free(component);
}

EXPORT fmi2Status NAMED(fmi2SetDebugLogging)(
    fmi2Component handle, fmi2Boolean logging, size_t count, const fmi2String names[]
) {
    WITH_COMPONENT;
    unsigned chosen = 0;
    if (count > 0 && !names) return refuse(component, "there are no names of log categories: the pointer is NULL");
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < CATEGORIES && !(names[i] && strcmp(names[i], categories[k]) == 0)) k++;
        if (k == CATEGORIES) return refuse(component, "there is no log category '%.200s'", names[i] ? names[i] : "");
        chosen |= k == 0 ? EVERY_STATUS : 1u << k;
    }
    if (count == 0) chosen = EVERY_STATUS;
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
        unit_functions.set_up(component->instance, start, has_stop ? &stop : NULL, has_tolerance ? &tolerance : NULL)
    );
}

EXPORT fmi2Status NAMED(fmi2EnterInitializationMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(unit_functions.enter_initialization(component->instance));
}

EXPORT fmi2Status NAMED(fmi2ExitInitializationMode)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(unit_functions.exit_initialization(component->instance));
}

EXPORT fmi2Status NAMED(fmi2Terminate)(fmi2Component handle) {
    WITH_COMPONENT;
    return status_of(unit_functions.terminate(component->instance));
}

EXPORT fmi2Status NAMED(fmi2Reset)(fmi2Component handle) {
    WITH_COMPONENT;
    unit_functions.reset(component->instance);
    return fmi2OK;
}

/* -- steps ------------------------------------------------------------------------------------------------------- */

EXPORT fmi2Status NAMED(fmi2DoStep)(fmi2Component handle, fmi2Real time, fmi2Real step, fmi2Boolean no_return) {
    WITH_COMPONENT;
    (void)no_return;
    return status_of(unit_functions.step(component->instance, time, step));
}

EXPORT fmi2Status NAMED(fmi2CancelStep)(fmi2Component handle) {
    WITH_COMPONENT;
    return refuse(component, "there is no step to cancel: steps are done when fmi2DoStep returns");
}

EXPORT fmi2Status NAMED(fmi2GetStatus)(fmi2Component handle, fmi2StatusKind kind, fmi2Status *value) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2DoStepStatus) return refuse(component, "this status is not of type fmi2Status");
    *value = status_of(unit_functions.last_step(component->instance));
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2GetRealStatus)(fmi2Component handle, fmi2StatusKind kind, fmi2Real *value) {
    WITH_COMPONENT;
    NEED(value, "a status");
    if (kind != fmi2LastSuccessfulTime) return refuse(component, "this status is not of type Real");
    *value = unit_functions.time(component->instance);
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
