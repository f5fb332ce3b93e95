/* Values of units: what is read, written, and noted of a call that goes wrong. */

#ifndef PORTS_H
#define PORTS_H

#include <math.h>
#include <stdint.h>

#include "environment.h"
#include "layout.h"

enum { WARNING = 1 };
enum outcome { MADE, REFUSED, UNFINISHED, NOT_FINITE, UNFIT, NO_JACOBIAN, NO_CONVERGENCE };

/* Note a call that went wrong. */
static enum outcome refused(struct Exchange *exchange, int number, int status)
{
    exchange->refused = number;
    exchange->status = status;
    return REFUSED;
}

/* Let the environment be as it was before a unit was called, and note which call has changed it. */
static void restore_environment(struct Exchange *exchange, int number)
{
    if (environment() == exchange->environment)
        return;
    set_environment(exchange->environment);
    exchange->disturbing[number] = 1;
}

static int access(void *component, const struct VariableBlock *group, const struct Access *access)
{
    if (access->counting)
        return access->counting(component, group->references, group->reference_count, group->buffer, group->count);
    return access->function(component, group->references, group->reference_count, group->buffer);
}

static enum outcome read_port(struct Exchange *exchange, const struct Port *port)
{
    for (size_t g = 0; g < port->group_count; g++) {
        const struct VariableBlock *group = &port->groups[g];
        int status = access(port->component, group, &group->get);
        restore_environment(exchange, group->get.number);
        if (status > WARNING)
            return refused(exchange, group->get.number, status);
        if (group->shares)
            continue;
        for (size_t k = 0; k < group->count; k++)
            if (group->places[k] >= 0)
                port->values[group->places[k]] =
                    group->whole ? (double)((int32_t *)group->buffer)[k] : ((double *)group->buffer)[k];
    }
    return MADE;
}

static enum outcome write_port(struct Exchange *exchange, const struct Port *port)
{
    for (size_t g = 0; g < port->group_count; g++) {
        const struct VariableBlock *group = &port->groups[g];
        for (size_t k = 0; !group->shares && k < group->count; k++) {
            if (group->places[k] < 0)
                continue;
            double value = port->values[group->places[k]];
            if (group->whole && !(rint(value) >= INT32_MIN && rint(value) <= INT32_MAX)) {
                refused(exchange, group->set.number, 0);
                return UNFIT;
            }
            if (group->whole)
                ((int32_t *)group->buffer)[k] = (int32_t)rint(value);
            else
                ((double *)group->buffer)[k] = value;
        }
        int status = access(port->component, group, &group->set);
        restore_environment(exchange, group->set.number);
        if (status > WARNING)
            return refused(exchange, group->set.number, status);
    }
    return MADE;
}

/* Give the slopes to an FMU that takes them; to others mbsfmu_set_within gives what follows from them. */
static enum outcome write_slopes(struct Exchange *exchange, const struct Port *port)
{
    if (!port->set_rates.function)
        return MADE;
    int status = port->set_rates.function(port->component, port->references, port->reference_count, port->orders,
                                          port->slopes);
    return status > WARNING ? refused(exchange, port->set_rates.number, status) : MADE;
}

static enum outcome read_rates(struct Exchange *exchange, const struct Port *port)
{
    const struct Rates *get = &port->get_rates;
    int status = get->counting ? get->counting(port->component, port->references, port->reference_count, port->orders,
                                               port->rates, port->rate_count)
                               : get->function(port->component, port->references, port->reference_count, port->orders,
                                               port->rates);
    return status > WARNING ? refused(exchange, port->get_rates.number, status) : MADE;
}

#endif
