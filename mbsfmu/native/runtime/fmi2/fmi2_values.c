/* Values and derivatives of variables, all of which are of type Real. */

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
