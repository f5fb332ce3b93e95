/* Clocks of sampled blocks, which the host sets. The value reference of time is that of the last variable, and those of
 * clocks follow it. */

#define FIRST_CLOCK (fmu_functions.variables + 1)

/* Whether value references are those of clocks. */
static int are_clocks(const Life *life, const fmi3ValueReference references[], size_t count) {
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= FIRST_CLOCK && fmu_functions.has_clock(references[k] - FIRST_CLOCK)) continue;
        refuse(&life->component, "there is no clock with value reference %u", (unsigned)references[k]);
        return 0;
    }
    return 1;
}

#define WITH_CLOCKS \
    WITH_INSTANCE; \
    NEED_ALL(count, references, "values"); \
    NEED_ALL(count, values, "values"); \
    if (!are_clocks(life, references, count)) return fmi3Error

#define FOR_PERIODIC_CLOCKS \
    WITH_CLOCKS; \
    if (!PERIODIC_CLOCKS) return refuse(component, "its clocks are triggered by the host: they have no interval")

EXPORT fmi3Status NAMED(fmi3SetClock)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, const fmi3Clock values[]
) {
    WITH_CLOCKS;
    for (size_t k = 0; k < count; k++) {
        const Status status = fmu_functions.set_clock(component->instance, references[k] - FIRST_CLOCK, values[k]);
        if (status != DONE) return status_of(status);
    }
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3GetClock)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3Clock values[]
) {
    WITH_CLOCKS;
    for (size_t k = 0; k < count; k++) {
        values[k] = fmu_functions.is_ticking(component->instance, references[k] - FIRST_CLOCK) != 0;
    }
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3GetIntervalDecimal)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3Float64 values[],
    fmi3IntervalQualifier qualifiers[]
) {
    FOR_PERIODIC_CLOCKS;
    NEED_ALL(count, qualifiers, "qualifiers");
    for (size_t k = 0; k < count; k++) {
        values[k] = fmu_functions.interval_of(references[k] - FIRST_CLOCK);
        qualifiers[k] = fmi3IntervalUnchanged;
    }
    return fmi3OK;
}

EXPORT fmi3Status NAMED(fmi3GetShiftDecimal)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3Float64 values[]
) {
    FOR_PERIODIC_CLOCKS;
    for (size_t k = 0; k < count; k++) values[k] = fmu_functions.shift_of(references[k] - FIRST_CLOCK);
    return fmi3OK;
}
