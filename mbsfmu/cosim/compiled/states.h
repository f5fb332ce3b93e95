/* States of units that are saved, and restored to make a step again. */

#ifndef STATES_H
#define STATES_H

#include "ports.h"

static enum outcome save_member(struct Exchange *exchange, struct Member *member)
{
    struct SavedState *saved = &member->saved;
    int status = saved->get.function(member->inputs.component, saved->state);
    if (status > WARNING)
        return refused(exchange, saved->get.number, status);
    if (member->make_step.report)
        saved->next_event = member->make_step.report->next_event;
    return MADE;
}

static enum outcome restore_member(struct Exchange *exchange, const struct Member *member)
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

#endif
