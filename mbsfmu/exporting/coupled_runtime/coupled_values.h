/* Ports of components, and single values that are set. */
#ifndef MBSFMU_COUPLED_VALUES_H
#define MBSFMU_COUPLED_VALUES_H

#include "coupled_events.h"

/* Fill a port from what is known of it; values are given, or memory of its own. */
static int make_port(struct Unit *unit, const struct PortSpec *spec, double *values, struct Port *port)
{
    struct System *system = unit->system;
    struct VariableBlock *blocks = room_for(system, spec->block_count, sizeof *blocks);
    int *orders = room_for(system, spec->slope_count, sizeof *orders);
    *port = (struct Port){.component = unit->component, .groups = blocks, .group_count = spec->block_count};
    port->count = spec->count;
    port->values = values ? values : room_for(system, spec->count, sizeof(double));
    port->slopes = room_for(system, spec->count, sizeof(double));
    port->references = (uint32_t *)spec->slope_references;
    port->reference_count = spec->slope_count;
    port->orders = orders;
    if (!blocks || !orders || !port->values || !port->slopes)
        return fails(system, "there is no memory for the values of %s", unit->spec->name);
    for (size_t k = 0; k < spec->slope_count; k++)
        orders[k] = 1;
    for (size_t k = 0; k < spec->block_count; k++) {
        const struct BlockSpec *from = &spec->blocks[k];
        struct VariableBlock *block = &blocks[k];
        Function get = need(unit, from->get), set = need(unit, from->set);
        if (!get || !set)
            return 0;
        block->get.number = number_of(unit, from->get);
        block->set.number = number_of(unit, from->set);
        if (unit->spec->version == 2) {
            block->get.function = (AccessFunction *)get;
            block->set.function = (AccessFunction *)set;
        } else {
            block->get.counting = (CountingAccessFunction *)get;
            block->set.counting = (CountingAccessFunction *)set;
        }
        block->references = (uint32_t *)from->references;
        block->reference_count = from->reference_count;
        block->count = from->count;
        block->places = (ptrdiff_t *)from->places;
        block->whole = from->whole;
        block->shares = from->shares;
        block->buffer = from->shares ? port->values : room_for(system, from->count, sizeof(double));
        if (!block->buffer)
            return fails(system, "there is no memory for the values of %s", unit->spec->name);
    }
    if (unit->spec->version == 2 && spec->slope_count) {
        RatesFunction *set = (RatesFunction *)function_of(unit->library, "fmi2SetRealInputDerivatives");
        port->set_rates.function = set;
        port->set_rates.number = number_of(unit, "fmi2SetRealInputDerivatives");
    }
    return 1;
}

/* Whether a call of the exchange went well; else the reason is told. */
static int went_well(struct System *system, int outcome)
{
    const struct Exchange *exchange = &system->exchange;
    if (outcome == MADE)
        return 1;
    const struct Call *call = &system->calls[exchange->refused];
    if (outcome == UNFIT)
        return fails(system, "%s at t = %.9g s is given a whole number beyond those of its type", call->unit->spec->name,
                     call->unit->clock.time);
    return is_done(call->unit, call->function, exchange->status);
}

/* Read the elements of arrays that a port does not set, but hands over beside those that it does. */
static int refresh_port(struct System *system, const struct Port *port)
{
    for (size_t k = 0; k < port->group_count; k++) {
        const struct VariableBlock *block = &port->groups[k];
        int is_partial = 0;
        for (size_t j = 0; j < block->count; j++)
            is_partial |= block->places[j] < 0;
        struct Unit *unit = system->calls[block->get.number].unit;
        if (is_partial &&
            !is_done(unit, system->calls[block->get.number].function, access(unit->component, block, &block->get)))
            return 0;
    }
    return 1;
}

/* -- single values ---------------------------------------------------------------------------------------------------- */

#define WRITE(TYPE) (((TYPE *)buffer)[place] = (TYPE)value)

static void write_value(void *buffer, enum ValueType type, size_t place, double value)
{
    switch (type) {
    case FLOAT64: WRITE(double); break;
    case FLOAT32: WRITE(float); break;
    case INT8: WRITE(int8_t); break;
    case UINT8: WRITE(uint8_t); break;
    case INT16: WRITE(int16_t); break;
    case UINT16: WRITE(uint16_t); break;
    case INT32: WRITE(int32_t); break;
    case UINT32: WRITE(uint32_t); break;
    case INT64: WRITE(int64_t); break;
    case UINT64: WRITE(uint64_t); break;
    case BOOLEAN: ((bool *)buffer)[place] = value != 0.0; break;
    case STRING: break;
    }
}

/* Least and greatest value of a type. */
static int fits(enum ValueType type, double value)
{
    static const double least[] = {-INFINITY, -INFINITY, -128.0, 0.0, -32768.0, 0.0, -2147483648.0, 0.0,
                                   -9007199254740992.0, 0.0, 0.0, 0.0};
    static const double most[] = {INFINITY, INFINITY, 127.0, 255.0, 32767.0, 65535.0, 2147483647.0, 4294967295.0,
                                  9007199254740992.0, 9007199254740992.0, 1.0, 0.0};
    return value >= least[type] && value <= most[type];
}

/* Set a value of a component, or a text. */
static int set_target(struct System *system, const struct TargetSpec *target, double value, const char *text)
{
    typedef int (*Plain)(void *, const uint32_t *, size_t, void *);
    typedef int (*Counting)(void *, const uint32_t *, size_t, void *, size_t);
    struct Unit *unit = &system->units[target->component];
    const int is_old = unit->spec->version == 2, is_real = target->type == FLOAT64 || target->type == FLOAT32;
    const int at_event = target->at_event && unit->is_stepping;
    Function set = need(unit, target->set), get = target->size > 1 ? need(unit, target->get) : set;
    double *buffer = calloc(target->size, sizeof(double));
    int done = set && get && buffer;
    if (!is_real)
        value = rint(value);
    if (done && !fits(target->type, value))
        done = fails(system, "%s is given %.9g, which is beyond the numbers of its type", unit->spec->name, value);
    if (done && target->size > 1)
        done = is_done(unit, target->get,
                       ((Counting)get)(unit->component, &target->reference, 1, buffer, target->size));
    if (done && at_event)
        done = call(unit, "fmi3EnterEventMode");
    if (done) {
        void *values = target->type == STRING ? (void *)&text : (void *)buffer;
        if (target->type != STRING)
            write_value(buffer, target->type, target->place, value);
        done = is_done(unit, target->set,
                       is_old ? ((Plain)set)(unit->component, &target->reference, 1, values)
                              : ((Counting)set)(unit->component, &target->reference, 1, values, target->size));
    }
    free(buffer);
    if (done && at_event)
        done = leave_event_mode(unit);
    restore_environment(&system->exchange, 0);
    return done;
}

#endif
