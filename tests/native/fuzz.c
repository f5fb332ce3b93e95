/* Random calls of the FMI: on several instances of two FMUs, in any order and mode, with values, sizes and pointers that
 * no host should give, and with saved states of other FMUs, damaged ones, and crafted ones whose checksum is true.
 *
 * With FMI3 defined units are of FMI 3.0, and fuzz_fmi3.h has its words.
 *
 * With EXCHANGE in the environment instances are for model exchange mostly.
 *
 * fuzz CALLS SEED {LIBRARY GUID VARIABLES STEP_REFERENCES RESOURCES} {the same of the other FMU}
 *
 * STEP_REFERENCES, separated by commas, are those of steps, the first being that of the FMU itself. RESOURCES are empty but of
 * coupled FMUs, whose states are no bytes: there all values are what a refused call must leave as they were.
 *
 * Sanitizers watch memory; the program itself checks that calls which are refused leave the unit as it was, and that
 * states which are damaged are refused. It prints how many calls it made and how many of these were taken.
 */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"

#define INSTANCES 4
#define STATES 6
#define MOST 12      /* references in one call */
#define MOST_STEPS 50 /* internal steps in one call: sanitizers are slow */
#define MOST_VALUES 64 /* continuous states; values of one call */
#define PATIENCE 5   /* refused calls after which an instance begins anew */
#define STEP_WORD 1  /* of the state: its internal step */
#define HEADER 88    /* bytes before the state itself; the checksum is the last eight of them */

typedef fmi2Status (*Plain)(fmi2Component);
typedef const fmi2ValueReference *References;

typedef struct {
    void *library;
    const char *guid, *resources;
    unsigned variables, step_references[MOST], steps;
    fmi2Component (*instantiate)(
        fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, fmi2Boolean, fmi2Boolean
    );
    void (*free_instance)(fmi2Component);
    Plain enter, leave, terminate, reset, cancel;
    fmi2Status (*debug)(fmi2Component, fmi2Boolean, size_t, const fmi2String *);
    fmi2Status (*setup)(fmi2Component, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real);
    fmi2Status (*get)(fmi2Component, References, size_t, fmi2Real *);
    fmi2Status (*set)(fmi2Component, References, size_t, const fmi2Real *);
    fmi2Status (*get_integer)(fmi2Component, References, size_t, fmi2Integer *);
    fmi2Status (*set_slopes)(fmi2Component, References, size_t, const fmi2Integer *, const fmi2Real *);
    fmi2Status (*get_slopes)(fmi2Component, References, size_t, const fmi2Integer *, fmi2Real *);
    fmi2Status (*directional)(fmi2Component, References, size_t, References, size_t, const fmi2Real *, fmi2Real *);
    fmi2Status (*step)(fmi2Component, fmi2Real, fmi2Real, fmi2Boolean);
    fmi2Status (*status)(fmi2Component, fmi2StatusKind, fmi2Status *);
    fmi2Status (*real_status)(fmi2Component, fmi2StatusKind, fmi2Real *);
    fmi2Status (*boolean_status)(fmi2Component, fmi2StatusKind, fmi2Boolean *);
    fmi2Status (*save)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*restore)(fmi2Component, fmi2FMUstate);
    fmi2Status (*release)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*size)(fmi2Component, fmi2FMUstate, size_t *);
    fmi2Status (*serialize)(fmi2Component, fmi2FMUstate, fmi2Byte *, size_t);
    fmi2Status (*deserialize)(fmi2Component, const fmi2Byte *, size_t, fmi2FMUstate *);
    Plain enter_events, enter_continuous;
    fmi2Status (*update)(fmi2Component, fmi2EventInfo *);
    fmi2Status (*complete)(fmi2Component, fmi2Boolean, fmi2Boolean *, fmi2Boolean *);
    fmi2Status (*set_time)(fmi2Component, fmi2Real);
    fmi2Status (*set_states)(fmi2Component, const fmi2Real *, size_t);
    fmi2Status (*get_states)(fmi2Component, fmi2Real *, size_t);
    fmi2Status (*get_rates)(fmi2Component, fmi2Real *, size_t);
    fmi2Status (*get_nominals)(fmi2Component, fmi2Real *, size_t);
    fmi2Status (*get_indicators)(fmi2Component, fmi2Real *, size_t);
} Unit;

typedef struct {
    const Unit *unit;
    fmi2Component component;
    int refusals; /* one after the other */
    fmi2Real time; /* of a point */
} Life;

typedef struct {
    const Unit *unit; /* that made it */
    fmi2FMUstate state;
} Kept;

static Unit units[2];
static Life lives[INSTANCES];
static Kept kept[STATES];
static uint64_t chance;
static int overflows; /* whether something has been set from which numbers overflow */
static int exchanges; /* whether FMUs are for model exchange too */
static unsigned long logged;

/* xorshift64*: the same calls for the same seed on every machine. */
static uint64_t next(void) {
    chance ^= chance >> 12;
    chance ^= chance << 25;
    chance ^= chance >> 27;
    return chance * 2685821657736338717u;
}

static unsigned below(unsigned count) { return (unsigned)((next() >> 33) % count); }

static double share(void) { return (double)(next() >> 11) / 9007199254740992.0; }

static void wrong(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static void logger(
    fmi2ComponentEnvironment where, fmi2String name, fmi2Status status, fmi2String category, fmi2String text, ...
) {
    char room[4096];
    (void)where;
    (void)status;
    if (!name || !category) wrong("the logger gets no name or no category");
    /* As hosts do that take it for the format that it is: a directive in it would read what is not there. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(room, sizeof room, text);
#pragma GCC diagnostic pop
    logged++;
}

static const fmi2CallbackFunctions callbacks = {logger, calloc, free, NULL, NULL};

static double number(double near) {
    switch (below(12)) {
        case 0: return NAN;
        case 1: return INFINITY;
        case 2: return -1e308;
        case 3: return 0.0;
        case 4: return 20.0 * share() - 10.0;
        case 5: return -near;
        case 6: return near;
        default: return near * (0.9 + 0.2 * share());
    }
}

static int is_coupled(const Unit *unit) { return *unit->resources != '\0'; }

/* Any number for a variable; steps stay near what they are, or are refused, since short ones take long. */
static double number_for(const Unit *unit, fmi2ValueReference reference, double near) {
    static const double refused[] = {NAN, INFINITY, -1e308, 0.0, -1.0};
    for (unsigned k = 0; k < unit->steps && is_coupled(unit); k++) {
        if (reference == unit->step_references[k]) return below(3) ? near : refused[below(5)];
    }
    return number(near);
}

static unsigned references(const Unit *unit, fmi2ValueReference *found) {
    const unsigned count = below(MOST);
    for (unsigned i = 0; i < count; i++) found[i] = below(100) ? below(unit->variables) : (unsigned)next();
    return count;
}

/* All values of an instance, or that there are none. */
static size_t values_as_bytes(const Life *life, fmi2Byte **bytes) {
    const Unit *unit = life->unit;
    fmi2Real *values = calloc(unit->variables, sizeof *values);
    for (fmi2ValueReference k = 0; k < unit->variables; k++) {
        fmi2Status status = fmi2Error;
        for (int again = 0; again < 6 && status != fmi2OK; again++) { /* calls of FMI 3.0 may have a wrong size by chance */
            status = unit->get(life->component, &k, 1, &values[k]);
        }
        if (status != fmi2OK) values[k] = -1e99;
    }
    *bytes = (fmi2Byte *)values;
    return unit->variables * sizeof *values;
}

/* The state of an instance as bytes; none where its numbers have overflown, from which nobody could go on. */
static size_t bytes_of(const Life *life, fmi2Byte **bytes) {
    fmi2FMUstate state = NULL;
    size_t size = 0;
    if (is_coupled(life->unit)) return values_as_bytes(life, bytes);
    if (life->unit->save(life->component, &state) != fmi2OK) wrong("a state cannot be saved");
    if (life->unit->size(life->component, state, &size) != fmi2OK) wrong("a state has no size");
    *bytes = malloc(size);
    if (life->unit->serialize(life->component, state, *bytes, size) != fmi2OK) {
        if (!overflows) wrong("a state cannot be serialized");
        size = 0;
    }
    if (life->unit->release(life->component, &state) != fmi2OK || state) wrong("a state cannot be freed");
    return size;
}

/* A call that is refused must have left everything as it was. */
static void must_be_as(const Life *life, fmi2Byte *before, size_t size, const char *call) {
    fmi2Byte *after;
    if (bytes_of(life, &after) != size || memcmp(before, after, size) != 0) {
        fprintf(stderr, "%s was refused and changed something\n", call);
        abort();
    }
    free(after);
}

static uint64_t with_word(uint64_t sum, uint64_t word) {
    sum = (sum ^ word) * 1099511628211u;
    return sum ^ sum >> 32;
}

static void seal(fmi2Byte *bytes, size_t size) {
    const uint64_t begin = 14695981039346656037u;
    uint64_t sums[4] = {begin, begin, begin, begin}, sum = begin, word;
    for (size_t i = HEADER, k = 0; i + sizeof word <= size; i += sizeof word, k++) {
        memcpy(&word, bytes + i, sizeof word);
        sums[k % 4] = with_word(sums[k % 4], word);
    }
    for (size_t k = 0; k < 4; k++) sum = with_word(sum, sums[k]);
    memcpy(bytes + HEADER - sizeof sum, &sum, sizeof sum);
}

/* Spoil a serialized state; returns whether it must be refused for sure. */
static int spoil(fmi2Byte *bytes, size_t *size) {
    const unsigned kind = below(5), count = 1 + below(8);
    if (kind == 0) {
        *size = below((unsigned)*size);
        return 1;
    }
    if (kind == 1) {
        for (size_t i = 0; i < *size; i++) bytes[i] = (fmi2Byte)next();
        return 1;
    }
    fmi2Byte *const copy = malloc(*size);
    memcpy(copy, bytes, *size);
    for (unsigned i = 0; i < count; i++) bytes[below((unsigned)*size)] ^= (fmi2Byte)(1u << below(8));
    int changed = memcmp(copy, bytes, *size) != 0;
    if (kind == 4 && *size > HEADER) { /* crafted: every number may be any, and the checksum is true */
        const size_t last = *size - 4 * (1 + below(16));
        const int32_t any = below(2) ? (int32_t)next() : (int32_t)below(4);
        if (last > HEADER) memcpy(bytes + last, &any, sizeof any);
        static const double numbers[] = {
            NAN, INFINITY, 1e300, -1e300, 1e100, -1e50, 1e50, 5e-324, -1e-310, 0.0, 1.0, -1.0, 1e9
        };
        const size_t words = (*size - HEADER) / sizeof *numbers;
        for (unsigned i = below(6); i > 0; i--) {
            const size_t word = below((unsigned)words);
            if (word == STEP_WORD) continue; /* a thousand million steps are allowed, and slow */
            memcpy(bytes + HEADER + word * sizeof *numbers, &numbers[below(13)], sizeof *numbers);
        }
        memcpy(bytes, copy, HEADER + sizeof(double));
        memcpy(bytes + HEADER + STEP_WORD * sizeof(double), copy + HEADER + STEP_WORD * sizeof(double), sizeof(double));
        if (!below(8)) memcpy(bytes + HEADER, &numbers[below(13)], sizeof *numbers); /* the time */
        seal(bytes, *size);
        overflows = 1;
        changed = 0;
    }
    free(copy);
    return changed;
}

/* What is no state of a coupled FMU, and cannot be one of another. */
static fmi2Status bytes_are_refused(Life *life) {
    fmi2Byte some[200] = {0}, *before;
    fmi2FMUstate state = NULL;
    const size_t size = bytes_of(life, &before);
    for (size_t i = 0; i < sizeof some; i++) some[i] = (fmi2Byte)next();
    const fmi2Status status = life->unit->deserialize(life->component, some, below(sizeof some), &state);
    if (status == fmi2OK || state) wrong("bytes without a meaning are taken");
    must_be_as(life, before, size, "a state as bytes");
    free(before);
    return status;
}

/* Hand a state back as bytes: of this FMU or the other, whole or spoilt. */
static fmi2Status take_bytes(Life *life) {
    const Life *source = &lives[below(INSTANCES)];
    fmi2Byte *bytes, *before;
    fmi2FMUstate state = NULL;
    if (!source->component) return fmi2OK;
    if (is_coupled(source->unit) || is_coupled(life->unit)) return bytes_are_refused(life);
    size_t size = bytes_of(source, &bytes);
    const size_t own = bytes_of(life, &before);
    if (size == 0 || own == 0) {
        free(bytes), free(before);
        return fmi2OK;
    }
    int must_fail = source->unit != life->unit;
    if (below(3)) must_fail |= spoil(bytes, &size);
    /* Behind the last byte there is nothing that may be read. */
    fmi2Byte *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    fmi2Status status = life->unit->deserialize(life->component, below(50) ? exact : NULL, size, &state);
    if (status == fmi2OK && must_fail) wrong("a foreign or damaged state is taken");
    if (status == fmi2OK) {
        status = life->unit->restore(life->component, state);
        if (status != fmi2OK) wrong("a state that was read is refused");
        life->unit->release(life->component, &state);
    } else {
        must_be_as(life, before, own, "a state as bytes");
    }
    free(exact);
    free(bytes);
    free(before);
    return status;
}

static fmi2Status set_values(Life *life) {
    fmi2ValueReference found[MOST];
    fmi2Real values[MOST] = {0.0};
    fmi2Byte *before;
    const unsigned count = references(life->unit, found);
    for (unsigned i = 0; i < count; i++) {
        fmi2Real near = 1.0;
        life->unit->get(life->component, &found[i], 1, &near);
        values[i] = number_for(life->unit, found[i], near);
    }
    const size_t size = bytes_of(life, &before);
    const fmi2Status status = life->unit->set(life->component, below(50) ? found : NULL, count, below(50) ? values : NULL);
    if (status != fmi2OK) must_be_as(life, before, size, "fmi2SetReal");
    if (status == fmi2OK && count > 0) overflows = 1;
    free(before);
    return status;
}

static fmi2Status set_slopes(Life *life) {
    fmi2ValueReference found[MOST];
    fmi2Real values[MOST] = {0.0};
    fmi2Integer orders[MOST] = {0};
    fmi2Byte *before;
    unsigned count = references(life->unit, found);
    if (below(2)) found[0] = 0, count = 1; /* inputs come first */
    for (unsigned i = 0; i < count; i++) {
        values[i] = number(1.0);
        orders[i] = below(10) ? 1 : (fmi2Integer)next();
    }
    const size_t size = bytes_of(life, &before);
    const fmi2Status status =
        life->unit->set_slopes(life->component, found, count, below(50) ? orders : NULL, below(50) ? values : NULL);
    if (status != fmi2OK) must_be_as(life, before, size, "fmi2SetRealInputDerivatives");
    free(before);
    return status;
}

static fmi2Status step(Life *life) {
    fmi2Real time = 0.0, most = 1e-3;
    life->unit->real_status(life->component, fmi2LastSuccessfulTime, &time);
    life->unit->get(life->component, life->unit->step_references, 1, &most);
    const fmi2Real sizes[] = {most, 3.3 * most, MOST_STEPS * most, 0.1 * most, 1e-12, 0.0, -1e-3, NAN, INFINITY, 1e300,
                              1e-315, 5e-324, DBL_MIN, 1e-300, 1e-101, 1e-99};
    const fmi2Real size = sizes[below(sizeof sizes / sizeof *sizes)];
    if (!below(20)) time = number(1.0);
    return life->unit->step(life->component, time, size, (fmi2Boolean)below(2));
}

/* What is read without a complaint is a number; values that were not read are zero. */
static fmi2Status in_numbers(fmi2Status status, const fmi2Real *values, const char *what) {
    for (unsigned i = 0; status == fmi2OK && i < MOST; i++) {
        if (!isfinite(values[i])) {
            fprintf(stderr, "%s is %g, and the call is done\n", what, values[i]);
            abort();
        }
    }
    return status;
}

static fmi2Status read_something(Life *life) {
    fmi2ValueReference found[MOST], knowns[MOST];
    fmi2Real values[MOST] = {0.0};
    fmi2Real directions[MOST] = {0.0};
    fmi2Integer orders[MOST], integers[MOST];
    fmi2Boolean flag = 0;
    fmi2Status status = fmi2OK;
    const Unit *unit = life->unit;
    const unsigned count = references(unit, found), known = references(unit, knowns);
    for (unsigned i = 0; i < MOST; i++) orders[i] = below(10) ? 1 : (fmi2Integer)next(), directions[i] = number(1.0);
    switch (below(10)) {
        case 0: return unit->get_slopes(life->component, found, count, below(50) ? orders : NULL, values);
        case 1: return in_numbers(unit->directional(
            life->component, found, count, knowns, known, below(50) ? directions : NULL, below(50) ? values : NULL
        ), values, "a derivative");
        case 2: return unit->status(life->component, (fmi2StatusKind)below(4), below(50) ? &status : NULL);
        case 3: return unit->real_status(life->component, (fmi2StatusKind)below(4), below(50) ? values : NULL);
        case 4: return unit->boolean_status(life->component, (fmi2StatusKind)below(4), below(50) ? &flag : NULL);
        case 5: return unit->get_integer(life->component, found, count, integers);
        case 6: case 7: return unit->cancel(life->component); /* of FMI 3.0: what only that has */
        default: return in_numbers(
            unit->get(life->component, below(50) ? found : NULL, count, below(50) ? values : NULL), values, "a value"
        );
    }
}

/* A state in memory: saved, handed back, to whichever instance; a place that is there already is used again. */
static fmi2Status keep_or_take(Life *life) {
    Kept *one = &kept[below(STATES)];
    fmi2Byte *before;
    fmi2Status status = fmi2OK;
    if (!one->state || below(2)) {
        status = life->unit->save(life->component, &one->state);
        if (status == fmi2OK) one->unit = life->unit;
        return status;
    }
    if (!below(4)) { /* who hands a state to another FMU keeps what the coupled ones inside have */
        const int lost = one->unit != life->unit && (is_coupled(one->unit) || is_coupled(life->unit));
        return lost ? fmi2OK : one->unit->release(life->component, &one->state);
    }
    const size_t size = bytes_of(life, &before);
    status = life->unit->restore(life->component, below(50) ? one->state : NULL);
    if (status == fmi2OK && one->unit != life->unit) wrong("a state of another FMU is taken");
    /* Where one component refuses its state, others being at theirs already, a coupled FMU goes on no more. */
    fmi2Real value;
    const int has_failed = is_coupled(life->unit)
        && life->unit->set(life->component, life->unit->step_references, 0, &value) != fmi2OK;
    if (status != fmi2OK && !has_failed) must_be_as(life, before, size, "a state");
    free(before);
    return status;
}

static fmi2Status begin(Life *life) {
    const char *const guids[] = {life->unit->guid, "{%s%n}", "", NULL};
    const char *guid = guids[below(8) ? 0 : below(4)];
    const fmi2CallbackFunctions *given = below(8) ? &callbacks : NULL;
    const fmi2Type other = exchanges && !below(8) ? (fmi2Type)below(3) : fmi2ModelExchange;
    const fmi2Type type = below(20) && !exchanges ? fmi2CoSimulation : other;
    const char *resources = below(50) ? life->unit->resources : "";
    life->component =
        life->unit->instantiate(below(20) ? "fuzz" : NULL, type, guid, resources, given, 0, (fmi2Boolean)below(2));
    return life->component ? fmi2OK : fmi2Error;
}

/* How many continuous states there are; none where the unit or the instance has none. */
static size_t count_states(const Life *life) {
    fmi2Real values[MOST_VALUES];
    for (size_t count = 0; count < MOST_VALUES; count++) {
        if (life->unit->get_states(life->component, values, count) == fmi2OK) return count;
    }
    return 0;
}

/* A point near the present one, as a solver sets it. */
static fmi2Status set_point(Life *life) {
    fmi2Real values[MOST_VALUES];
    fmi2Byte *before;
    const Unit *unit = life->unit;
    size_t count = count_states(life);
    fmi2Real step = 1e-3 * share();
    if (unit->get_states(life->component, values, count) != fmi2OK) return fmi2Error;
    fmi2Real rates[MOST_VALUES] = {0.0};
    unit->get_rates(life->component, rates, count);
    life->time += below(4) ? step : number(1e-3);
    for (size_t i = 0; i < count; i++) values[i] += step * (below(200) ? rates[i] : number(1.0));
    const size_t size = bytes_of(life, &before);
    fmi2Status status = unit->set_time(life->component, life->time);
    if (status != fmi2OK) must_be_as(life, before, size, "fmi2SetTime");
    free(before);
    if (!below(100)) count = below(MOST_VALUES);
    const size_t anew = bytes_of(life, &before);
    status = unit->set_states(life->component, below(100) ? values : NULL, count);
    if (status != fmi2OK) must_be_as(life, before, anew, "fmi2SetContinuousStates");
    free(before);
    return status;
}

static fmi2Status exchange(Life *life) {
    const Unit *unit = life->unit;
    fmi2Real values[MOST_VALUES];
    fmi2EventInfo info;
    fmi2Boolean event = 0, end = 0;
    fmi2Byte *before;
    fmi2Status status = fmi2OK;
    static const char *const names[] = {
        "fmi2EnterEventMode", "fmi2NewDiscreteStates", "fmi2NewDiscreteStates", "fmi2EnterContinuousTimeMode",
        "fmi2EnterContinuousTimeMode", "fmi2CompletedIntegratorStep", "fmi2CompletedIntegratorStep", "", "",
        "fmi2GetEventIndicators",
    };
    const size_t count = below(50) ? count_states(life) : below(MOST_VALUES);
    const size_t size = bytes_of(life, &before);
    const unsigned kind = below(12);
    switch (kind) {
        case 0: status = unit->enter_events(life->component); break;
        case 1: case 2: status = unit->update(life->component, below(50) ? &info : NULL); break;
        case 3: case 4: status = unit->enter_continuous(life->component); break;
        case 5: case 6: status = unit->complete(
            life->component, (fmi2Boolean)below(2), below(50) ? &event : NULL, below(50) ? &end : NULL
        ); break;
        case 7: status = unit->get_rates(life->component, below(50) ? values : NULL, count); break;
        case 8: status = unit->get_nominals(life->component, below(50) ? values : NULL, count); break;
        case 9: status = unit->get_indicators(life->component, below(50) ? values : NULL, below(2)); break;
        default: free(before); return set_point(life);
    }
    /* What is read while initializing is found before it is refused, as with values. */
    const int reads = kind == 7 || kind == 8;
    if (status != fmi2OK && !reads) must_be_as(life, before, size, names[kind]);
    free(before);
    return status;
}

/* What a host does before it steps. */
static fmi2Status get_going(Life *life) {
    life->unit->reset(life->component);
    life->unit->setup(life->component, 0, 0.0, 0.0, 0, 0.0);
    life->unit->enter(life->component);
    if (below(2)) set_values(life);
    life->time = 0.0;
    return life->unit->leave(life->component);
}

static fmi2Status change_mode(Life *life) {
    static const fmi2String names[] = {"logAll", "logStatusError", "%n", NULL};
    const Unit *unit = life->unit;
    const double tolerances[] = {1e-6, 1e-3, 0.0, -1.0, NAN, 1e300};
    switch (below(8)) {
        case 0: return unit->setup(
            life->component, (fmi2Boolean)below(2), tolerances[below(6)], number(1.0), (fmi2Boolean)below(2), number(2.0)
        );
        case 1: return unit->enter(life->component);
        case 2: return unit->leave(life->component);
        case 3: return below(10) ? fmi2OK : unit->terminate(life->component);
        case 4: return unit->reset(life->component);
        case 5: return unit->debug(life->component, (fmi2Boolean)below(2), below(5), below(20) ? names : NULL);
        default: return get_going(life);
    }
}

static fmi2Status call(Life *life) {
    if (!life->component) {
        const fmi2Status status = begin(life);
        return status == fmi2OK && below(4) ? get_going(life) : status;
    }
    switch (below(100)) {
        case 0: life->unit->free_instance(life->component); life->component = NULL; return fmi2OK;
        case 1: case 2: case 3: case 4: return change_mode(life);
        default: break;
    }
    if (exchanges && below(2)) return exchange(life);
    switch (below(6)) {
        case 0: return step(life);
        case 1: return set_values(life);
        case 2: return below(3) ? read_something(life) : set_slopes(life);
        case 3: return keep_or_take(life);
        default: return below(2) ? take_bytes(life) : step(life);
    }
}

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) wrong(name);
    return found;
}

#ifdef FMI3

#include "fuzz_fmi3.h"

#else

static void load_functions(Unit *unit) {
#define FIND(member, name) *(void **)&unit->member = symbol(unit->library, "fmi2" name)
    FIND(instantiate, "Instantiate");
    FIND(free_instance, "FreeInstance");
    FIND(enter, "EnterInitializationMode");
    FIND(leave, "ExitInitializationMode");
    FIND(terminate, "Terminate");
    FIND(reset, "Reset");
    FIND(cancel, "CancelStep");
    FIND(debug, "SetDebugLogging");
    FIND(setup, "SetupExperiment");
    FIND(get, "GetReal");
    FIND(set, "SetReal");
    FIND(get_integer, "GetInteger");
    FIND(set_slopes, "SetRealInputDerivatives");
    FIND(get_slopes, "GetRealOutputDerivatives");
    FIND(directional, "GetDirectionalDerivative");
    FIND(step, "DoStep");
    FIND(status, "GetStatus");
    FIND(real_status, "GetRealStatus");
    FIND(boolean_status, "GetBooleanStatus");
    FIND(save, "GetFMUstate");
    FIND(restore, "SetFMUstate");
    FIND(release, "FreeFMUstate");
    FIND(size, "SerializedFMUstateSize");
    FIND(serialize, "SerializeFMUstate");
    FIND(deserialize, "DeSerializeFMUstate");
    FIND(enter_events, "EnterEventMode");
    FIND(enter_continuous, "EnterContinuousTimeMode");
    FIND(update, "NewDiscreteStates");
    FIND(complete, "CompletedIntegratorStep");
    FIND(set_time, "SetTime");
    FIND(set_states, "SetContinuousStates");
    FIND(get_states, "GetContinuousStates");
    FIND(get_rates, "GetDerivatives");
    FIND(get_nominals, "GetNominalsOfContinuousStates");
    FIND(get_indicators, "GetEventIndicators");
}

#endif

static void load(Unit *unit, char **arguments) {
    unit->library = dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL);
    if (!unit->library) wrong(dlerror());
    unit->guid = arguments[1];
    unit->resources = arguments[4];
    unit->variables = (unsigned)atoi(arguments[2]);
    for (const char *next_one = arguments[3]; next_one && unit->steps < MOST; next_one = strchr(next_one, ',')) {
        next_one += *next_one == ',';
        unit->step_references[unit->steps++] = (unsigned)atoi(next_one);
    }
    load_functions(unit);
}

int main(int count, char **arguments) {
    if (count != 13) return 2;
    const unsigned long calls = strtoul(arguments[1], NULL, 10);
    unsigned long taken[fmi2Pending + 1] = {0};
    exchanges = getenv("EXCHANGE") != NULL;
    chance = 2685821657736338717u * (strtoul(arguments[2], NULL, 10) + 1);
    for (int i = 0; i < 2; i++) load(&units[i], arguments + 3 + 5 * i);
    for (int i = 0; i < INSTANCES; i++) lives[i].unit = &units[i % 2];
    for (unsigned long i = 0; i < calls; i++) {
        Life *life = &lives[below(INSTANCES)];
        const int stuck = life->component && life->refusals > PATIENCE;
        const fmi2Status status = stuck ? get_going(life) : call(life);
        life->refusals = status == fmi2Error && !stuck ? life->refusals + 1 : 0;
        if (status == fmi2Fatal || status == fmi2Pending) wrong("a call says fatal or pending");
        taken[status]++;
    }
    for (int i = 0; i < INSTANCES; i++) {
        const Unit *unit = lives[i].unit;
        for (int again = 0; again < 100 && !lives[i].component; again++) { /* how it is made in FMI 3.0 is chance */
            lives[i].component = unit->instantiate("end", fmi2CoSimulation, unit->guid, unit->resources, NULL, 0, 0);
        }
        if (!lives[i].component) wrong("there is no instance to release states by");
        for (int k = 0; k < STATES; k++) {
            if (kept[k].state && kept[k].unit == unit) unit->release(lives[i].component, &kept[k].state);
        }
        unit->free_instance(lives[i].component);
    }
    printf("%lu calls: %lu done, %lu discarded, %lu refused, %lu messages\n", calls, taken[fmi2OK], taken[fmi2Discard],
           taken[fmi2Error], logged);
    return 0;
}
