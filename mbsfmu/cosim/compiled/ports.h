/* Values of units: what is read, written, and noted of a call that goes wrong. */

#ifndef PORTS_H
#define PORTS_H

#include <math.h>
#include <stdint.h>

#include "layout.h"

enum { WARNING = 1 };
enum outcome { MADE, REFUSED, UNFINISHED, NOT_FINITE };

/* Note a call that went wrong. */
static enum outcome refused(struct Exchange *exchange, int number, int status)
{
    exchange->refused = number;
    exchange->status = status;
    return REFUSED;
}

static enum outcome read_port(struct Exchange *exchange, const struct Port *port)
{
    for (size_t g = 0; g < port->group_count; g++) {
        const struct Group *group = &port->groups[g];
        int status = group->get.function(port->component, group->references, group->count, group->buffer);
        if (status > WARNING)
            return refused(exchange, group->get.number, status);
        if (group->shares)
            continue;
        for (size_t k = 0; k < group->count; k++)
            port->values[group->places[k]] =
                group->whole ? (double)((int32_t *)group->buffer)[k] : ((double *)group->buffer)[k];
    }
    return MADE;
}

static enum outcome write_port(struct Exchange *exchange, const struct Port *port)
{
    for (size_t g = 0; g < port->group_count; g++) {
        const struct Group *group = &port->groups[g];
        for (size_t k = 0; !group->shares && k < group->count; k++) {
            double value = port->values[group->places[k]];
            if (group->whole)
                ((int32_t *)group->buffer)[k] = (int32_t)rint(value);
            else
                ((double *)group->buffer)[k] = value;
        }
        int status = group->set.function(port->component, group->references, group->count, group->buffer);
        if (status > WARNING)
            return refused(exchange, group->set.number, status);
    }
    return MADE;
}

static enum outcome write_slopes(struct Exchange *exchange, const struct Port *port)
{
    int status = port->set_rates.function(port->component, port->references, port->count, port->orders, port->slopes);
    return status > WARNING ? refused(exchange, port->set_rates.number, status) : MADE;
}

static enum outcome read_rates(struct Exchange *exchange, const struct Port *port)
{
    int status = port->get_rates.function(port->component, port->references, port->count, port->orders, port->rates);
    return status > WARNING ? refused(exchange, port->get_rates.number, status) : MADE;
}

#endif
