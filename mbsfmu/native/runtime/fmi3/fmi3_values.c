/* Values and derivatives of variables, all of which are of type Float64. A value reference is the index of a variable of
 * the unit, of an array that of its first element, which the others follow; behind the last one is that of time. */

/* Variables by index, of which there are as many as all values of some references together. */
typedef struct {
    unsigned *indices, room[64];
    size_t count;
} Elements;

static void forget(Elements *elements) {
    if (elements->indices != elements->room) free(elements->indices);
}

/* How many numbers a value reference stands for; none where it is that of no variable. */
static unsigned size_of(fmi3ValueReference reference) {
    if (reference == fmu_functions.variables) return 1; /* time */
    return reference < fmu_functions.variables ? array_sizes[reference] : 0;
}

/* Whether the host may use a reference now. */
static int may_use(const Life *life, fmi3ValueReference reference, int with_time) {
    const Component *component = &life->component;
    const int is_time = reference == fmu_functions.variables;
    if (size_of(reference) == 0) {
        refuse(component, "there is no Float64 variable with value reference %u", (unsigned)reference);
    } else if (is_time && !with_time) {
        refuse(component, "value reference %u is that of time, which can be got and nothing else", (unsigned)reference);
    } else if (life->update != NO_UPDATE && (is_time || !life->intermediate[reference])) {
        refuse(component, "value reference %u is none of the required intermediate variables", (unsigned)reference);
    } else {
        return 1;
    }
    return 0;
}

/* Find the elements of some references, which must be as many as the host has values. */
static fmi3Status find_elements(
    const Life *life, const fmi3ValueReference references[], size_t count, const fmi3Float64 values[], size_t value_count,
    int with_time, Elements *found
) {
    const Component *component = &life->component;
    found->count = 0;
    found->indices = found->room;
    NEED_ALL(count, references, "values");
    NEED_ALL(value_count, values, "values");
    for (size_t k = 0; k < count; k++) {
        if (!may_use(life, references[k], with_time)) return fmi3Error;
        found->count += size_of(references[k]);
    }
    if (found->count != value_count) {
        return refuse(
            component, "the variables have %lu values together, the call has %lu", (unsigned long)found->count,
            (unsigned long)value_count
        );
    }
    if (found->count > sizeof found->room / sizeof *found->room) {
        found->indices = malloc(found->count * sizeof *found->indices);
        if (!found->indices) return refuse(component, "there is no memory for %lu indices", (unsigned long)found->count);
    }
    for (size_t k = 0, next = 0; k < count; k++) {
        for (unsigned i = 0; i < size_of(references[k]); i++) found->indices[next++] = references[k] + i;
    }
    return fmi3OK;
}

/* Get the values of elements, time among them. */
static Status get_elements(const Component *component, const Elements *found, fmi3Float64 values[]) {
    Status status = DONE;
    for (size_t first = 0; first < found->count && status == DONE;) {
        size_t end = first;
        while (end < found->count && found->indices[end] != fmu_functions.variables) end++;
        status = fmu_functions.get(component->instance, found->indices + first, end - first, values + first);
        if (end < found->count) values[end] = fmu_functions.time(component->instance);
        first = end + 1;
    }
    return status;
}

EXPORT fmi3Status NAMED(fmi3GetFloat64)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, fmi3Float64 values[], size_t value_count
) {
    WITH_INSTANCE_ANYTIME;
    Elements found;
    if (life->update == BEFORE_INTERNAL_STEP) return refuse(component, "nothing can be got before an internal step");
    if (find_elements(life, references, count, values, value_count, 1, &found) != fmi3OK) return fmi3Error;
    const Status status = get_elements(component, &found, values);
    forget(&found);
    return status_of(status);
}

EXPORT fmi3Status NAMED(fmi3SetFloat64)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, const fmi3Float64 values[], size_t value_count
) {
    WITH_INSTANCE_ANYTIME;
    Elements found;
    if (life->update == AFTER_INTERNAL_STEP) return refuse(component, "nothing can be set after an internal step");
    if (find_elements(life, references, count, values, value_count, 0, &found) != fmi3OK) return fmi3Error;
    const Status status = life->update == NO_UPDATE
        ? fmu_functions.set(component->instance, found.indices, found.count, values)
        : fmu_functions.lead(component->instance, found.indices, found.count, values, life->internal_end);
    forget(&found);
    return status_of(status);
}

EXPORT fmi3Status NAMED(fmi3GetOutputDerivatives)(
    fmi3Instance handle, const fmi3ValueReference references[], size_t count, const fmi3Int32 orders[], fmi3Float64 values[],
    size_t value_count
) {
    WITH_INSTANCE_ANYTIME;
    Elements found;
    if (life->update == BEFORE_INTERNAL_STEP) return refuse(component, "nothing can be got before an internal step");
    NEED_ALL(count, orders, "derivatives");
    for (size_t k = 0; k < count; k++) {
        if (orders[k] == 1) continue;
        return refuse(component, "derivatives of order %d are not known; only the first is", (int)orders[k]);
    }
    if (find_elements(life, references, count, values, value_count, 0, &found) != fmi3OK) return fmi3Error;
    const Status status = fmu_functions.get_rates(component->instance, found.indices, found.count, values);
    forget(&found);
    return status_of(status);
}

/* -- partial derivatives ------------------------------------------------------------------------------------------ */

static Status directional(
    Instance *instance, const Elements *unknowns, const Elements *knowns, const fmi3Float64 seed[], fmi3Float64 values[]
) {
    return fmu_functions.get_derivatives(
        instance, unknowns->indices, unknowns->count, knowns->indices, knowns->count, seed, values
    );
}

/* The products of the seed with the derivatives by each known, which are found one known after the other. */
static Status adjoint(
    Instance *instance, const Elements *unknowns, const Elements *knowns, const fmi3Float64 seed[], fmi3Float64 values[]
) {
    const double one = 1.0;
    double column[64];
    for (size_t j = 0; j < knowns->count; j++) {
        size_t first = 0;
        values[j] = 0.0;
        do {
            const size_t left = unknowns->count - first, most = sizeof column / sizeof *column;
            const size_t count = left < most ? left : most;
            const Status status = fmu_functions.get_derivatives(
                instance, unknowns->indices + first, count, knowns->indices + j, 1, &one, column
            );
            if (status != DONE) return status;
            for (size_t i = 0; i < count; i++) values[j] += seed[first + i] * column[i];
            first += count;
        } while (first < unknowns->count);
    }
    return DONE;
}

typedef Status (*Derivative)(Instance *, const Elements *, const Elements *, const fmi3Float64[], fmi3Float64[]);

/* Derivatives where the unknowns and the knowns have as many values as the host says. */
static fmi3Status derivatives(
    Life *life, Derivative find, const fmi3ValueReference unknowns[], size_t unknown_count, const fmi3Float64 of_unknowns[],
    size_t unknown_values, const fmi3ValueReference knowns[], size_t known_count, const fmi3Float64 of_knowns[],
    size_t known_values, const fmi3Float64 seed[], fmi3Float64 sensitivity[]
) {
    Elements dependent, independent;
    fmi3Status status = find_elements(life, unknowns, unknown_count, of_unknowns, unknown_values, 0, &dependent);
    if (status != fmi3OK) return status;
    status = find_elements(life, knowns, known_count, of_knowns, known_values, 0, &independent);
    if (status == fmi3OK) {
        status = status_of(find(life->component.instance, &dependent, &independent, seed, sensitivity));
        forget(&independent);
    }
    forget(&dependent);
    return status;
}

EXPORT fmi3Status NAMED(fmi3GetDirectionalDerivative)(
    fmi3Instance handle, const fmi3ValueReference unknowns[], size_t unknown_count, const fmi3ValueReference knowns[],
    size_t known_count, const fmi3Float64 seed[], size_t seed_count, fmi3Float64 sensitivity[], size_t sensitivity_count
) {
    WITH_INSTANCE;
    (void)component;
    return derivatives(
        life, directional, unknowns, unknown_count, sensitivity, sensitivity_count, knowns, known_count, seed, seed_count,
        seed, sensitivity
    );
}

EXPORT fmi3Status NAMED(fmi3GetAdjointDerivative)(
    fmi3Instance handle, const fmi3ValueReference unknowns[], size_t unknown_count, const fmi3ValueReference knowns[],
    size_t known_count, const fmi3Float64 seed[], size_t seed_count, fmi3Float64 sensitivity[], size_t sensitivity_count
) {
    WITH_INSTANCE;
    (void)component;
    return derivatives(
        life, adjoint, unknowns, unknown_count, seed, seed_count, knowns, known_count, sensitivity, sensitivity_count, seed,
        sensitivity
    );
}

/* -- clocks of sampled blocks --------------------------------------------------------------------------------------- */

#if CLOCKS

#define FIRST_CLOCK (fmu_functions.variables + 1) /* behind time */

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

#endif
