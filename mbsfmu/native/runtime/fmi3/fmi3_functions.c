/* Life cycle and log. */

EXPORT const char *NAMED(fmi3GetVersion)(void) { return "3.0"; }

/* Why a variable cannot be reached during steps; NULL where it can. */
static const char *objection_to(const fmi3ValueReference references[], size_t count) {
    if (count > 0 && !references) return "there are no references of intermediate variables: the pointer is NULL";
    for (size_t k = 0; k < count; k++) {
        const fmi3ValueReference reference = references[k];
        if (reference == fmu_functions.variables || !size_of(reference) || !is_intermediate[reference]) {
            return "an intermediate variable is no continuous input or output of this FMU";
        }
    }
    return NULL;
}

/* Remember which variables the host wants to reach during steps; returns 0 where there is no memory. */
static int keep_intermediate(Life *life, const fmi3ValueReference references[], size_t count) {
    life->intermediate = calloc(fmu_functions.variables, 1);
    if (!life->intermediate) return 0;
    for (size_t k = 0; k < count; k++) life->intermediate[references[k]] = 1;
    return 1;
}

EXPORT fmi3Instance NAMED(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3Boolean event_mode, fmi3Boolean early_return, const fmi3ValueReference intermediate[], size_t intermediate_count,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update
) {
    Life *life = calloc(1, sizeof(Life));
    (void)visible;
    if (!life) return NULL;
    life->component.logger = logger;
    life->component.environment = environment;
    life->component.logged = logging ? EVERY_STATUS : 0;
    life->uses_events = event_mode;
    life->takes_early_return = early_return;
    life->intermediate_update = update;
    const char *refused = objection_to(intermediate, intermediate_count);
    if (!refused && TRIGGERED_CLOCKS && !event_mode) {
        refused = "its clocks are triggered by the host, which needs event mode for it";
    }
    if (begin_life(&life->component, name, token, resources, "instantiation token", 0, refused)) {
#if CLOCKS
        if (event_mode) fmu_functions.follow_clocks(life->component.instance);
#endif
        if (keep_intermediate(life, intermediate, intermediate_count)) return life;
        refuse(&life->component, "there is no memory for an instance");
        fmu_functions.destroy(life->component.instance);
    }
    free(life);
    return NULL;
}

EXPORT void NAMED(fmi3FreeInstance)(fmi3Instance handle) {
    Life *life = handle;
    if (!life) return;
    if (life->update != NO_UPDATE) {
        refuse(&life->component, "the instance cannot be freed from an intermediate update");
        return;
    }
    fmu_functions.destroy(life->component.instance);
    free(life->intermediate);
    free(life);
}

EXPORT fmi3Status NAMED(fmi3SetDebugLogging)(
    fmi3Instance handle, fmi3Boolean logging, size_t count, const fmi3String names[]
) {
    WITH_INSTANCE;
    unsigned chosen;
    if (find_categories(component, count, names, &chosen) != fmi3OK) return fmi3Error;
    if (logging) {
        component->logged |= chosen;
    } else {
        component->logged &= ~chosen;
    }
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3EnterInitializationMode)(
    fmi3Instance handle, fmi3Boolean has_tolerance, fmi3Float64 tolerance, fmi3Float64 start, fmi3Boolean has_stop,
    fmi3Float64 stop
) {
    WITH_INSTANCE;
    const double *tolerance_given = has_tolerance ? &tolerance : NULL;
    const Status status = fmu_functions.set_up(component->instance, start, has_stop ? &stop : NULL, tolerance_given);
    return status_of(status == DONE ? fmu_functions.enter_initialization(component->instance) : status);
}

EXPORT fmi3Status NAMED(fmi3ExitInitializationMode)(fmi3Instance handle) {
    WITH_INSTANCE;
    const Status status = fmu_functions.exit_initialization(component->instance);
    return status_of(status == DONE && life->uses_events ? fmu_functions.enter_events(component->instance) : status);
}

EXPORT fmi3Status NAMED(fmi3Terminate)(fmi3Instance handle) {
    WITH_INSTANCE;
    return status_of(fmu_functions.terminate(component->instance));
}

EXPORT fmi3Status NAMED(fmi3Reset)(fmi3Instance handle) {
    WITH_INSTANCE;
    return status_of(fmu_functions.reset(component->instance));
}
