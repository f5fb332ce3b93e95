/* Functions of units: values, states and steps, and what is noted of a call that goes wrong. */

#ifndef PORTS_H
#define PORTS_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "environment.h"
#include "layout.h"

enum { WARNING = 1 };

/* Note a call that went wrong. */
static int refused(struct Exchange *exchange, int number, int status)
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

static int read_port(struct Exchange *exchange, const struct Port *port)
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

static int write_port(struct Exchange *exchange, const struct Port *port)
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
static int write_slopes(struct Exchange *exchange, const struct Port *port)
{
    if (!port->set_rates.function)
        return MADE;
    int status = port->set_rates.function(port->component, port->references, port->reference_count, port->orders,
                                          port->slopes);
    return status > WARNING ? refused(exchange, port->set_rates.number, status) : MADE;
}

static int read_rates(struct Exchange *exchange, const struct Port *port)
{
    const struct Rates *get = &port->get_rates;
    int status = get->counting ? get->counting(port->component, port->references, port->reference_count, port->orders,
                                               port->rates, port->rate_count)
                               : get->function(port->component, port->references, port->reference_count, port->orders,
                                               port->rates);
    return status > WARNING ? refused(exchange, port->get_rates.number, status) : MADE;
}

/* -- states and steps ---------------------------------------------------------------------------------------------- */

static int save_member(struct Exchange *exchange, struct Member *member)
{
    struct SavedState *saved = &member->saved;
    int status = saved->get.function(member->inputs.component, saved->state);
    if (status > WARNING)
        return refused(exchange, saved->get.number, status);
    if (member->make_step.report)
        saved->next_event = member->make_step.report->next_event;
    return MADE;
}

static int restore_member(struct Exchange *exchange, const struct Member *member)
{
    struct Report *report = member->make_step.report;
    int status = member->saved.set.function(member->inputs.component, *member->saved.state);
    if (status > WARNING)
        return refused(exchange, member->saved.set.number, status);
    if (report) {
        report->next_event = member->saved.next_event;
        report->event = report->ends = false;
    }
    return MADE;
}

/* Whether an event is at a time in s, to round-off of times that add up lengths of steps. */
static bool is_at_event(const struct Report *report, double now)
{
    return report->event || report->next_event <= now + NEIGHBOURS * (DBL_EPSILON * fabs(now));
}

/* Call a unit for a step; one that reports is not asked to go beyond its next event. */
static int call_unit(const struct Exchange *exchange, const struct Member *member, double time, double step)
{
    const bool goes_back = exchange->goes_back || (member->saved.state && exchange->saved_at < time);
    const bool stays = exchange->earliest >= time && !goes_back;
    const struct MakeStep *make = &member->make_step;
    struct Report *report = make->report;
    void *component = member->inputs.component;
    if (!report)
        return make->function(component, time, step, stays);
    report->asked = !is_at_event(report, time + step);
    if (!report->asked)
        return 0;
    return make->reporting(component, time, step, stays, &report->event, &report->ends, &report->early, &report->reached);
}

static bool needs_a_look(const struct Report *report)
{
    return report && (!report->asked || report->event || report->ends || report->early || report->trouble);
}

/* Make one of a unit's own steps from a time on, in s; what it says of it may need a look before it goes on. */
static int make_unit_step(struct Exchange *exchange, const struct Member *member, double begin, double step)
{
    member->clock->time = begin;
    member->clock->steps++;
    int status = call_unit(exchange, member, begin, step);
    restore_environment(exchange, member->make_step.number);
    if (status > WARNING || needs_a_look(member->make_step.report)) {
        exchange->unit_step = step;
        refused(exchange, member->make_step.number, status);
        return UNFINISHED;
    }
    return MADE;
}

/* What Python alone does, and asks for in its tables. */
static int advance_apart(struct Exchange *exchange, int first, int behind)
{
    return (void)exchange, (void)first, (void)behind, REFUSED;
}

static int correct_outputs(struct Exchange *exchange)
{
    return (void)exchange, REFUSED;
}

static int integrate_joined(struct Exchange *exchange)
{
    return (void)exchange, REFUSED;
}

#endif
