/* FMI 3.0 in the words of FMI 2.0 that fuzz.c makes its calls in, and the calls that only FMI 3.0 has. */
#include "fmi3.h"


typedef const fmi3ValueReference *References3;

/* What fuzz.c knows as a component. */
typedef struct {
    fmi3Instance instance;
    int unit, defined;
    fmi3Boolean has_tolerance, has_stop;
    double tolerance, start, stop;
} Instance3;

typedef struct {
    unsigned char sizes[4096];
    fmi3Instance (*instantiate)(
        fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean, fmi3Boolean, fmi3Boolean, References3, size_t,
        fmi3InstanceEnvironment, fmi3LogMessageCallback, fmi3IntermediateUpdateCallback
    );
    void (*free_instance)(fmi3Instance);
    fmi3Status (*leave)(fmi3Instance), (*terminate)(fmi3Instance), (*reset)(fmi3Instance);
    fmi3Status (*enter_events)(fmi3Instance), (*enter_steps)(fmi3Instance), (*configure)(fmi3Instance);
    fmi3Status (*enter)(fmi3Instance, fmi3Boolean, fmi3Float64, fmi3Float64, fmi3Boolean, fmi3Float64);
    fmi3Status (*debug)(fmi3Instance, fmi3Boolean, size_t, const fmi3String *);
    fmi3Status (*get)(fmi3Instance, References3, size_t, fmi3Float64 *, size_t);
    fmi3Status (*set)(fmi3Instance, References3, size_t, const fmi3Float64 *, size_t);
    fmi3Status (*get_integer)(fmi3Instance, References3, size_t, fmi3Int32 *, size_t);
    fmi3Instance (*instantiate_exchange)(
        fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean, fmi3InstanceEnvironment, fmi3LogMessageCallback
    );
    fmi3Status (*enter_continuous)(fmi3Instance), (*set_time)(fmi3Instance, fmi3Float64);
    fmi3Status (*set_states)(fmi3Instance, const fmi3Float64 *, size_t);
    fmi3Status (*get_states)(fmi3Instance, fmi3Float64 *, size_t), (*get_rates)(fmi3Instance, fmi3Float64 *, size_t);
    fmi3Status (*get_nominals)(fmi3Instance, fmi3Float64 *, size_t);
    fmi3Status (*get_indicators)(fmi3Instance, fmi3Float64 *, size_t);
    fmi3Status (*complete)(fmi3Instance, fmi3Boolean, fmi3Boolean *, fmi3Boolean *);
    fmi3Status (*get_clock)(fmi3Instance, References3, size_t, fmi3Clock *);
    fmi3Status (*set_clock)(fmi3Instance, References3, size_t, const fmi3Clock *);
    fmi3Status (*get_shift)(fmi3Instance, References3, size_t, fmi3Float64 *);
    fmi3Status (*get_slopes)(fmi3Instance, References3, size_t, const fmi3Int32 *, fmi3Float64 *, size_t);
    fmi3Status (*directional)(
        fmi3Instance, References3, size_t, References3, size_t, const fmi3Float64 *, size_t, fmi3Float64 *, size_t
    );
    fmi3Status (*adjoint)(
        fmi3Instance, References3, size_t, References3, size_t, const fmi3Float64 *, size_t, fmi3Float64 *, size_t
    );
    fmi3Status (*step)(
        fmi3Instance, fmi3Float64, fmi3Float64, fmi3Boolean, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Float64 *
    );
    fmi3Status (*update)(
        fmi3Instance, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Float64 *
    );
    fmi3Status (*save)(fmi3Instance, fmi3FMUState *), (*restore)(fmi3Instance, fmi3FMUState);
    fmi3Status (*release)(fmi3Instance, fmi3FMUState *), (*size)(fmi3Instance, fmi3FMUState, size_t *);
    fmi3Status (*serialize)(fmi3Instance, fmi3FMUState, fmi3Byte *, size_t);
    fmi3Status (*deserialize)(fmi3Instance, const fmi3Byte *, size_t, fmi3FMUState *);
} Functions3;

static Functions3 functions[2];


#define OF(component) \
    Instance3 *const own = (component); \
    const Functions3 *const f = &functions[own->unit]

static void logger3(fmi3InstanceEnvironment where, fmi3Status status, fmi3String category, fmi3String text) {
    (void)where;
    if (!category || !text || status > fmi3Fatal) wrong("the logger gets no category, no text or no status");
    logged++;
}

/* How many values some references have together; as many as a call may have at most. */
static size_t values_of(const Functions3 *f, References3 found, size_t count) {
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += found[i] < sizeof f->sizes ? f->sizes[found[i]] : 1;
    return below(30) ? sum : below(MOST_VALUES);
}

/* During a step: gets and sets, calls that are not for now, and wishes to end it. */
static void intermediate_update(
    fmi3InstanceEnvironment where, fmi3Float64 time, fmi3Boolean may_set, fmi3Boolean may_get, fmi3Boolean done,
    fmi3Boolean may_return, fmi3Boolean *early, fmi3Float64 *until
) {
    OF(where);
    fmi3ValueReference found[MOST];
    fmi3Float64 values[MOST_VALUES] = {0.0};
    const unsigned count = below(3);
    fmi3Status status = fmi3Error;
    if (!own->instance) return; /* of an instance that is being made */
    if (may_set == may_get || may_get != done) wrong("an internal step has neither begun nor ended");
    for (unsigned i = 0; i < count; i++) found[i] = below(8);
    for (unsigned i = 0; i < MOST_VALUES; i++) values[i] = number(1.0);
    switch (below(8)) {
        case 0: f->get(own->instance, found, count, values, values_of(f, found, count)); break;
        case 1: f->free_instance(own->instance); break;
        case 2: status = f->reset(own->instance); break;
        case 3: status = f->directional(own->instance, found, count, found, count, values, count, values, count); break;
        default: f->set(own->instance, found, count, values, values_of(f, found, count)); break;
    }
    if (status == fmi3OK) wrong("a call that is not for intermediate updates is taken");
    if (may_return && !below(10)) {
        *early = true;
        *until = below(3) ? time + number(1e-3) : number(time);
    }
}

static fmi2Component instantiate3(
    int unit, fmi2String name, fmi2Type type, fmi2String token, fmi2String resources, const fmi2CallbackFunctions *given
) {
    const fmi3ValueReference references3[] = {0, 1, below(8), (fmi3ValueReference)next()};
    const Functions3 *const f = &functions[unit];
    Instance3 *own = calloc(1, sizeof *own);
    own->unit = unit;
    own->defined = (int)below(2); /* event mode */
    own->instance = type == fmi2ModelExchange
        ? f->instantiate_exchange(name, token, NULL, false, below(2), own, given ? logger3 : NULL)
        : f->instantiate(
        name, token, *resources || below(2) ? resources : NULL, false, below(2), own->defined, below(2), below(50) ? references3 : NULL, below(5), own,
        given ? logger3 : NULL, below(2) ? intermediate_update : NULL
    );
    if (own->instance) return own;
    free(own);
    return NULL;
}

static fmi2Component instantiate_0(
    fmi2String name, fmi2Type type, fmi2String token, fmi2String resources, const fmi2CallbackFunctions *given,
    fmi2Boolean visible, fmi2Boolean logging
) {
    (void)visible, (void)logging;
    return instantiate3(0, name, type, token, resources, given);
}

static fmi2Component instantiate_1(
    fmi2String name, fmi2Type type, fmi2String token, fmi2String resources, const fmi2CallbackFunctions *given,
    fmi2Boolean visible, fmi2Boolean logging
) {
    (void)visible, (void)logging;
    return instantiate3(1, name, type, token, resources, given);
}

static void free3(fmi2Component component) {
    OF(component);
    f->free_instance(own->instance);
    free(own);
}

static fmi2Status setup3(
    fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start, fmi2Boolean has_stop, fmi2Real stop
) {
    Instance3 *own = component;
    own->has_tolerance = has_tolerance;
    own->tolerance = tolerance;
    own->start = start;
    own->has_stop = has_stop;
    own->stop = stop;
    return fmi2OK;
}

static fmi2Status enter3(fmi2Component component) {
    OF(component);
    return (fmi2Status)f->enter(own->instance, own->has_tolerance, own->tolerance, own->start, own->has_stop, own->stop);
}

static fmi2Status leave3(fmi2Component component) {
    OF(component);
    const fmi3Status status = f->leave(own->instance);
    if (status == fmi3OK && own->defined && below(4)) f->enter_steps(own->instance);
    return (fmi2Status)status;
}

static fmi2Status terminate3(fmi2Component component) { OF(component); return (fmi2Status)f->terminate(own->instance); }
static fmi2Status reset3(fmi2Component component) { OF(component); return (fmi2Status)f->reset(own->instance); }

/* Calls that only FMI 3.0 has; the states that may have been left are event mode and step mode. */
static fmi2Status cancel3(fmi2Component component) {
    OF(component);
    fmi3Boolean flags[5];
    fmi3Float64 time, values[MOST_VALUES] = {0.0}, seeds[MOST_VALUES];
    fmi3ValueReference found[MOST], knowns[MOST];
    fmi3Clock clocks[MOST];
    const unsigned count = below(MOST), known = below(4);
    const fmi3ValueReference first_clock = units[own->unit].variables + 1; /* that of time is before it */
    for (unsigned i = 0; i < MOST; i++) {
        found[i] = below(3) ? below(60) : first_clock + below(20) / 19;
        knowns[i] = below(20);
        clocks[i] = below(2);
    }
    for (unsigned i = 0; i < MOST_VALUES; i++) seeds[i] = number(1.0);
    switch (below(10)) {
        case 0: return (fmi2Status)f->enter_events(own->instance);
        case 1: return (fmi2Status)f->enter_steps(own->instance);
        case 2: return (fmi2Status)f->configure(own->instance);
        case 3: return (fmi2Status)f->get_clock(own->instance, found, count, clocks);
        case 4: return (fmi2Status)f->adjoint(
            own->instance, found, count, knowns, known, below(50) ? seeds : NULL, values_of(f, found, count),
            below(50) ? values : NULL, values_of(f, knowns, known)
        );
        case 5: return (fmi2Status)f->set_clock(own->instance, found, count, below(50) ? clocks : NULL);
        case 6: return (fmi2Status)f->set_clock(own->instance, &first_clock, 1, clocks);
        case 7: return (fmi2Status)f->get_shift(own->instance, found, count, below(50) ? values : NULL);
        default: break;
    }
    f->enter_events(own->instance);
    const fmi3Status status =
        f->update(own->instance, &flags[0], &flags[1], below(50) ? &flags[2] : NULL, &flags[3], &flags[4], &time);
    if (below(4)) f->enter_steps(own->instance);
    return (fmi2Status)status;
}

static fmi2Status debug3(fmi2Component component, fmi2Boolean logging, size_t count, const fmi2String *names) {
    OF(component);
    return (fmi2Status)f->debug(own->instance, logging, count, names);
}

static fmi2Status get3(fmi2Component component, References found, size_t count, fmi2Real *values) {
    OF(component);
    fmi3Float64 all[MOST_VALUES] = {0.0};
    const size_t size = found ? values_of(f, found, count) : count;
    const fmi3Status status = f->get(own->instance, found, count, values ? all : NULL, size);
    if (status == fmi3OK && values) memcpy(values, all, sizeof *all * (size < count ? size : count));
    return (fmi2Status)status;
}

static fmi2Status set3(fmi2Component component, References found, size_t count, const fmi2Real *values) {
    OF(component);
    fmi3Float64 all[MOST_VALUES] = {0.0};
    const size_t size = found ? values_of(f, found, count) : count;
    for (size_t i = 0; values && i < MOST_VALUES; i++) all[i] = values[i < count ? i : 0];
    return (fmi2Status)f->set(own->instance, found, count, values ? all : NULL, size);
}

static fmi2Status get_integer3(fmi2Component component, References found, size_t count, fmi2Integer *values) {
    OF(component);
    return (fmi2Status)f->get_integer(own->instance, found, count, values, count);
}

/* Of FMI 2.0 alone. */
static fmi2Status set_slopes3(
    fmi2Component component, References found, size_t count, const fmi2Integer *orders, const fmi2Real *values
) {
    (void)component, (void)found, (void)count, (void)orders, (void)values;
    return fmi2OK;
}

static fmi2Status get_slopes3(
    fmi2Component component, References found, size_t count, const fmi2Integer *orders, fmi2Real *values
) {
    OF(component);
    fmi3Float64 all[MOST_VALUES] = {0.0};
    (void)values;
    return (fmi2Status)f->get_slopes(own->instance, found, count, orders, all, values_of(f, found, count));
}

static fmi2Status directional3(
    fmi2Component component, References unknowns, size_t unknown, References knowns, size_t known, const fmi2Real *directions,
    fmi2Real *values
) {
    OF(component);
    fmi3Float64 all[MOST_VALUES] = {0.0}, seeds[MOST_VALUES] = {0.0};
    for (size_t i = 0; directions && i < MOST_VALUES; i++) seeds[i] = directions[i % MOST];
    return (fmi2Status)f->directional(
        own->instance, unknowns, unknown, knowns, known, directions ? seeds : NULL, values_of(f, knowns, known),
        values ? all : NULL, values_of(f, unknowns, unknown)
    );
}

static fmi2Status step3(fmi2Component component, fmi2Real time, fmi2Real size, fmi2Boolean no_return) {
    OF(component);
    fmi3Boolean event = false, end = false, early = false;
    fmi3Float64 last = 0.0;
    const fmi3Status status =
        f->step(own->instance, time, size, no_return, &event, &end, below(50) ? &early : NULL, below(50) ? &last : NULL);
    if (status == fmi3OK && !(last >= time - fabs(time) && last <= time + 1.0001 * size)) wrong("a step ends outside of itself");
    return (fmi2Status)status;
}

static fmi2Status status3(fmi2Component component, fmi2StatusKind kind, fmi2Status *status) {
    (void)component, (void)kind, (void)status;
    return fmi2OK;
}

/* The time of the instance, by the value reference behind the last one. */
static fmi2Status real_status3(fmi2Component component, fmi2StatusKind kind, fmi2Real *value) {
    OF(component);
    const fmi3ValueReference time = units[own->unit].variables;
    (void)kind;
    return value ? (fmi2Status)f->get(own->instance, &time, 1, value, 1) : fmi2OK;
}

static fmi2Status boolean_status3(fmi2Component component, fmi2StatusKind kind, fmi2Boolean *value) {
    (void)component, (void)kind, (void)value;
    return fmi2OK;
}

static fmi2Status save3(fmi2Component component, fmi2FMUstate *state) {
    OF(component);
    return (fmi2Status)f->save(own->instance, state);
}

static fmi2Status restore3(fmi2Component component, fmi2FMUstate state) {
    OF(component);
    return (fmi2Status)f->restore(own->instance, state);
}

static fmi2Status release3(fmi2Component component, fmi2FMUstate *state) {
    OF(component);
    return (fmi2Status)f->release(own->instance, state);
}

static fmi2Status size3(fmi2Component component, fmi2FMUstate state, size_t *size) {
    OF(component);
    return (fmi2Status)f->size(own->instance, state, size);
}

static fmi2Status serialize3(fmi2Component component, fmi2FMUstate state, fmi2Byte *bytes, size_t size) {
    OF(component);
    return (fmi2Status)f->serialize(own->instance, state, (fmi3Byte *)bytes, size);
}

static fmi2Status deserialize3(fmi2Component component, const fmi2Byte *bytes, size_t size, fmi2FMUstate *state) {
    OF(component);
    return (fmi2Status)f->deserialize(own->instance, (const fmi3Byte *)bytes, size, state);
}

static fmi2Status enter_events3(fmi2Component component) {
    OF(component);
    return (fmi2Status)f->enter_events(own->instance);
}

static fmi2Status enter_continuous3(fmi2Component component) {
    OF(component);
    return (fmi2Status)f->enter_continuous(own->instance);
}

static fmi2Status update3(fmi2Component component, fmi2EventInfo *info) {
    OF(component);
    fmi3Boolean flags[5];
    fmi3Float64 time;
    return (fmi2Status)f->update(own->instance, info ? &flags[0] : NULL, &flags[1], &flags[2], &flags[3], &flags[4], &time);
}

static fmi2Status complete3(fmi2Component component, fmi2Boolean prior, fmi2Boolean *event, fmi2Boolean *end) {
    OF(component);
    fmi3Boolean flags[2];
    return (fmi2Status)f->complete(own->instance, prior != 0, event ? &flags[0] : NULL, end ? &flags[1] : NULL);
}

static fmi2Status set_time3(fmi2Component component, fmi2Real time) {
    OF(component);
    return (fmi2Status)f->set_time(own->instance, time);
}

static fmi2Status set_states3(fmi2Component component, const fmi2Real *values, size_t count) {
    OF(component);
    return (fmi2Status)f->set_states(own->instance, values, count);
}

#define READS(name, member) \
    static fmi2Status name(fmi2Component component, fmi2Real *values, size_t count) { \
        OF(component); \
        return (fmi2Status)f->member(own->instance, values, count); \
    }
READS(get_states3, get_states)
READS(get_rates3, get_rates)
READS(get_nominals3, get_nominals)
READS(get_indicators3, get_indicators)

static void *symbol(void *library, const char *name);

/* Find out how many values each reference has: there are arrays of three and four. */
static void measure(const Unit *unit, Functions3 *f) {
    fmi3Float64 values[4];
    if (unit->variables >= sizeof f->sizes) wrong("there are too many variables");
    memset(f->sizes, is_coupled(unit), unit->variables + 1); /* which have no arrays, and no outputs before they start */
    fmi3Instance instance = f->instantiate("size", unit->guid, unit->resources, false, false, true, false, NULL, 0, NULL, NULL, NULL);
    if (!instance) wrong("there is no instance to measure");
    for (fmi3ValueReference k = 0; k <= unit->variables && !is_coupled(unit); k++) {
        for (unsigned size = 1; size <= 4; size++) {
            if (f->get(instance, &k, 1, values, size) == fmi3OK) f->sizes[k] = (unsigned char)size;
        }
    }
    f->free_instance(instance);
}

static void load_functions(Unit *unit) {
    Functions3 *const f = &functions[unit - units];
#define FIND3(member, name) *(void **)&f->member = symbol(unit->library, "fmi3" name)
    FIND3(instantiate, "InstantiateCoSimulation");
    FIND3(free_instance, "FreeInstance");
    FIND3(leave, "ExitInitializationMode");
    FIND3(terminate, "Terminate");
    FIND3(reset, "Reset");
    FIND3(enter_events, "EnterEventMode");
    FIND3(enter_steps, "EnterStepMode");
    FIND3(configure, "EnterConfigurationMode");
    FIND3(enter, "EnterInitializationMode");
    FIND3(debug, "SetDebugLogging");
    FIND3(get, "GetFloat64");
    FIND3(set, "SetFloat64");
    FIND3(get_integer, "GetInt32");
    FIND3(instantiate_exchange, "InstantiateModelExchange");
    FIND3(enter_continuous, "EnterContinuousTimeMode");
    FIND3(set_time, "SetTime");
    FIND3(set_states, "SetContinuousStates");
    FIND3(get_states, "GetContinuousStates");
    FIND3(get_rates, "GetContinuousStateDerivatives");
    FIND3(get_nominals, "GetNominalsOfContinuousStates");
    FIND3(get_indicators, "GetEventIndicators");
    FIND3(complete, "CompletedIntegratorStep");
    FIND3(get_clock, "GetClock");
    FIND3(set_clock, "SetClock");
    FIND3(get_shift, "GetShiftDecimal");
    FIND3(get_slopes, "GetOutputDerivatives");
    FIND3(directional, "GetDirectionalDerivative");
    FIND3(adjoint, "GetAdjointDerivative");
    FIND3(step, "DoStep");
    FIND3(update, "UpdateDiscreteStates");
    FIND3(save, "GetFMUState");
    FIND3(restore, "SetFMUState");
    FIND3(release, "FreeFMUState");
    FIND3(size, "SerializedFMUStateSize");
    FIND3(serialize, "SerializeFMUState");
    FIND3(deserialize, "DeserializeFMUState");
    measure(unit, f);
    unit->instantiate = unit == units ? instantiate_0 : instantiate_1;
    unit->free_instance = free3, unit->enter = enter3, unit->leave = leave3, unit->terminate = terminate3;
    unit->reset = reset3, unit->cancel = cancel3, unit->debug = debug3, unit->setup = setup3;
    unit->get = get3, unit->set = set3, unit->get_integer = get_integer3;
    unit->set_slopes = set_slopes3, unit->get_slopes = get_slopes3, unit->directional = directional3;
    unit->enter_events = enter_events3, unit->enter_continuous = enter_continuous3, unit->update = update3;
    unit->complete = complete3, unit->set_time = set_time3, unit->set_states = set_states3;
    unit->get_states = get_states3, unit->get_rates = get_rates3, unit->get_nominals = get_nominals3;
    unit->get_indicators = get_indicators3;
    unit->step = step3, unit->status = status3, unit->real_status = real_status3, unit->boolean_status = boolean_status3;
    unit->save = save3, unit->restore = restore3, unit->release = release3;
    unit->size = size3, unit->serialize = serialize3, unit->deserialize = deserialize3;
}
