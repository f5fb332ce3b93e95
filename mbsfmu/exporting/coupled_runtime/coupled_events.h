/* Steps of components that need a look: events of FMI 3.0, and steps that were discarded but for a part. */
#ifndef MBSFMU_COUPLED_EVENTS_H
#define MBSFMU_COUPLED_EVENTS_H

#include "coupled_components.h"
#include "times.h"

enum { MOST_ITERATIONS = 1000 };

/* Update discrete states until they are settled, and go back to steps. */
static int leave_event_mode(struct Unit *unit)
{
    typedef int (*Update)(void *, bool *, bool *, bool *, bool *, bool *, double *);
    Update update = (Update)need(unit, "fmi3UpdateDiscreteStates");
    if (!update)
        return 0;
    for (int k = 0; k < MOST_ITERATIONS; k++) {
        bool again = false, ends = false, nominals = false, values = false, defined = false;
        double next = INFINITY;
        int status = update(unit->component, &again, &ends, &nominals, &values, &defined, &next);
        restore_environment(&unit->system->exchange, 0);
        if (!is_done(unit, "fmi3UpdateDiscreteStates", status))
            return 0;
        if (!ends && again)
            continue;
        unit->report.next_event = defined ? next : INFINITY;
        if (!call(unit, "fmi3EnterStepMode"))
            return 0;
        if (ends)
            unit->report.ends = true;
        return 1;
    }
    return fails(unit->system, "%s at t = %.9g s: the event iteration does not converge in %d iterations",
                 unit->spec->name, unit->clock.time, MOST_ITERATIONS);
}

static int ends_the_run(struct Unit *unit, double time)
{
    return fails(unit->system, "%s ends the run at t = %.9g s", unit->spec->name, time);
}

/* Find the time in s that a step has led to which was to go to `goal`. */
static int arrive(struct Unit *unit, double goal, int status, double *now)
{
    struct Report *report = &unit->report;
    int trouble = report->trouble;
    report->trouble = 0;
    if (!is_done(unit, "fmi3SetFloat64", trouble) || !is_done(unit, "fmi3DoStep", status))
        return 0;
    *now = goal;
    if (!(report->early || report->ends))
        return 1;
    *now = report->reached;
    if (unit->clock.time <= *now && *now <= goal + time_tolerance(goal - unit->clock.time, goal, goal))
        return 1;
    return fails(unit->system, "%s at t = %.9g s: fmi3DoStep comes back early at t = %.9g s, outside of its step",
                 unit->spec->name, unit->clock.time, *now);
}

/* Go from a time in s inside a step to its end, and handle what happens on the way. */
static int go_to_end(struct Unit *unit, double begin, double now, double end, double step)
{
    typedef int (*Step)(void *, double, double, bool, bool *, bool *, bool *, double *);
    struct Report *report = &unit->report;
    const bool stays = !unit->system->exchange.goes_back;
    double same = time_tolerance(step, begin, end), before = -INFINITY;
    int idle = 0;
    bool missed = false;
    Step make = (Step)need(unit, "fmi3DoStep");
    if (!make)
        return 0;
    while (!report->ends && (now < end - same || is_at_event(report, now))) {
        if (is_at_event(report, now)) {
            const double announced = report->next_event;
            /* By round-off the event is still to come to the component. */
            if (missed || !(report->event || announced <= now)) {
                double length = RESOLVED_STEP * resolution(end, end), behind;
                int status =
                    make(unit->component, now, length, stays, &report->event, &report->ends, &report->early, &report->reached);
                restore_environment(&unit->system->exchange, 0);
                if (!arrive(unit, now + length, status, &behind))
                    return 0;
            }
            if (!call(unit, "fmi3EnterEventMode"))
                return 0;
            report->event = false;
            if (!leave_event_mode(unit))
                return 0;
            missed = report->next_event == announced && announced <= now;
        } else {
            double next = report->next_event;
            double goal = unit->spec->takes_any_step && now < next && next < end - same ? next : end;
            double length = now == begin && goal == end ? step : goal - now;
            int status =
                make(unit->component, now, length, stays, &report->event, &report->ends, &report->early, &report->reached);
            restore_environment(&unit->system->exchange, 0);
            if (!arrive(unit, goal, status, &now))
                return 0;
        }
        idle = now <= before + NEIGHBOURS * resolution(end, end) ? idle + 1 : 0;
        before = now;
        if (idle > MOST_ITERATIONS)
            return fails(unit->system, "%s returns from its steps at t = %.9g s again and again", unit->spec->name, now);
    }
    return report->ends ? ends_the_run(unit, now) : 1;
}

/* Make the rest of a step of FMI 2.0 that was discarded but for a part; its inputs run on. */
static int go_on_after_discard(struct Unit *unit, double step, int status)
{
    typedef int (*RealStatus)(void *, int, double *);
    typedef int (*BooleanStatus)(void *, int, int *);
    typedef int (*Step)(void *, double, double, int);
    struct Exchange *exchange = &unit->system->exchange;
    RealStatus real = (RealStatus)need(unit, "fmi2GetRealStatus");
    BooleanStatus boolean = (BooleanStatus)need(unit, "fmi2GetBooleanStatus");
    Step make = (Step)need(unit, "fmi2DoStep");
    const double end = unit->clock.time + step;
    double begin = unit->clock.time;
    if (!real || !boolean || !make)
        return 0;
    while (status == DISCARDED_STEP) {
        double reached = begin, found = begin;
        int has_ended = 0;
        char said[sizeof unit->said];
        memcpy(said, unit->said, sizeof said);
        if (real(unit->component, LAST_SUCCESSFUL_TIME, &found) == 0)
            reached = found;
        if (boolean(unit->component, TERMINATED, &has_ended) != 0)
            has_ended = 0;
        memcpy(unit->said, said, sizeof said);
        if (has_ended)
            return ends_the_run(unit, reached);
        if (!(begin < reached && reached < end))
            break;
        for (int k = 0; unit->spec->ramps && k < unit->entries.count; k++)
            unit->entries.values[k] += (reached - begin) * unit->entries.slopes[k];
        if (unit->spec->ramps && (write_port(exchange, &unit->entries) != MADE ||
                                  write_slopes(exchange, &unit->entries) != MADE))
            return fails(unit->system, "%s at t = %.9g s does not take its inputs", unit->spec->name, reached);
        unit->clock.time = reached;
        unit->clock.steps++;
        status = make(unit->component, reached, end - reached, !exchange->goes_back);
        restore_environment(exchange, 0);
        begin = reached;
    }
    return is_done(unit, "fmi2DoStep", status);
}

/* Look at what a step in s of a component has led to, and go on from there to its end. */
static int finish_step(struct Unit *unit, double step, int status)
{
    const double begin = unit->clock.time, end = begin + step;
    double now = begin;
    if (unit->spec->version == 2)
        return go_on_after_discard(unit, step, status);
    if (unit->report.asked && !arrive(unit, end, status, &now))
        return 0;
    return go_to_end(unit, begin, now, end, step);
}

#endif
