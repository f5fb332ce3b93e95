/*
 * Communication steps.
 *
 * All arrays are those of the master in Python (mbsfmu/cosim), whose History, Member, PowerBond and Record say what
 * they hold. What is computed here is computed there in the same order, each operation rounded by itself: a run is the
 * same to the last bit wherever its steps are made, and may change between both after any of them.
 */

#ifndef _WIN32
#define _POSIX_C_SOURCE 199309L
#endif

#include <float.h>
#include <math.h>
#include <string.h>

#include "ports.h"

#ifdef INSIDE_FMU /* coupled_system.c includes this file, has the constants, and goes from step to step itself */
#define EXPORTED static
#elif defined(_WIN32)
#include <windows.h>
#define EXPORTED __declspec(dllexport)
#else
#include <time.h>
#define EXPORTED __attribute__((visibility("default")))
#endif

/* -- polynomials -------------------------------------------------------------------------------------------------- */

/* Combine what is known of the outputs [begin, end) to coefficients, in the order of the known rows. */
static void combine(const struct Exchange *exchange, const double *weights, size_t begin, size_t end)
{
    size_t n = exchange->outputs;
    for (size_t row = 0; row < exchange->output_rows; row++) {
        double *result = exchange->polynomials + row * exchange->columns;
        for (size_t j = begin; j < end; j++)
            result[j] = 0.0;
        for (size_t k = 0; k < exchange->known_rows; k++) {
            const double *weight = weights + (row * exchange->known_rows + k) * n, *known = exchange->known + k * n;
            for (size_t j = begin; j < end; j++)
                result[j] += weight[j] * known[j];
        }
    }
}

/* The squares of what holding and lines have missed of adaptive outputs, each the last two of the known rows. */
static double *missed_squares(const struct Exchange *exchange)
{
    return exchange->known + (exchange->known_rows - 2) * exchange->outputs;
}

static int is_held(const struct Exchange *exchange, size_t j)
{
    const double *squares = missed_squares(exchange);
    return exchange->held[j] || (exchange->adapts && !(squares[exchange->outputs + j] <= STRAIGHT * squares[j]));
}

static void hold(const struct Exchange *exchange, const double *values, size_t begin, size_t end)
{
    for (size_t j = begin; j < end; j++) {
        if (!is_held(exchange, j))
            continue;
        exchange->polynomials[j] = values[j];
        for (size_t row = 1; row < exchange->output_rows; row++)
            exchange->polynomials[row * exchange->columns + j] = 0.0;
    }
}

static void extrapolate(const struct Exchange *exchange)
{
    const double *present = exchange->known + exchange->outputs;
    if (exchange->output_rows == 1) {
        memcpy(exchange->polynomials, present, exchange->outputs * sizeof(double));
        return;
    }
    combine(exchange, exchange->extrapolation, 0, exchange->outputs);
    hold(exchange, present, 0, exchange->outputs);
}

/* Let the outputs [begin, end) run to values at the end of the step. */
static void interpolate_to(const struct Exchange *exchange, const double *values, size_t begin, size_t end)
{
    size_t bytes = (end - begin) * sizeof(double);
    if (exchange->output_rows == 1) {
        memcpy(exchange->polynomials + begin, values + begin, bytes);
        return;
    }
    memcpy(exchange->known + begin, values + begin, bytes);
    combine(exchange, exchange->interpolation, begin, end);
    hold(exchange, values, begin, end);
}

/* Let the outputs [begin, end) run to what was read. */
static void interpolate(const struct Exchange *exchange, size_t begin, size_t end)
{
    interpolate_to(exchange, exchange->values, begin, end);
}

/* Let the columns after the outputs follow signals: held, or straight to their values at the end. */
static void follow_signals(const struct Exchange *exchange)
{
    size_t count = exchange->columns - exchange->outputs;
    const double *after = exchange->signals_after + exchange->made * count;
    const double *before = exchange->signals_before + exchange->made * count;
    for (size_t row = 0; row < exchange->rows; row++) {
        double *column = exchange->polynomials + row * exchange->columns + exchange->outputs;
        for (size_t j = 0; j < count; j++)
            column[j] = row == 0 ? after[j] : row == 1 && exchange->output_rows > 1 ? before[j] - after[j] : 0.0;
    }
}

static double mean(const double *coefficients, size_t stride, size_t rows)
{
    double result = coefficients[0];
    for (size_t power = 1; power < rows; power++)
        result += coefficients[power * stride] / (double)(power + 1);
    return result;
}

/* -- units -------------------------------------------------------------------------------------------------------- */

/* Take what the inputs of a unit run along, over the whole step. */
static void take(const struct Exchange *exchange, const struct Member *member)
{
    for (size_t row = 0; row < exchange->rows; row++) {
        double *taken = member->taken + row * member->entries;
        const double *from = exchange->polynomials + row * exchange->columns;
        for (size_t k = 0; k < member->entries; k++)
            taken[k] = from[member->sources[k]];
        for (size_t k = 0; member->converts && k < member->entries; k++)
            taken[k] *= member->factors[k];
    }
    for (size_t k = 0; member->converts && k < member->entries; k++)
        member->taken[k] += member->offsets[k];
    for (size_t k = 0; exchange->has_missed && k < member->entries; k++)
        member->taken[k] += exchange->missed[member->first_entry + k] / exchange->step;
}

/* Cut a part out of what the inputs run along. */
static const double *part_of(const struct Exchange *exchange, const struct Member *member)
{
    if (member->rate == 1)
        return member->taken;
    double begin = (double)exchange->part / (double)member->rate;
    double width = (double)(exchange->part + 1) / (double)member->rate - begin;
    size_t n = member->entries;
    const double *whole = member->taken;
    double *part = member->portion;
    memcpy(part, whole, exchange->rows * n * sizeof(double));
    for (size_t k = 0; exchange->rows > 1 && k < n; k++) {
        part[k] += begin * whole[n + k];
        part[n + k] *= width;
    }
    for (size_t k = 0; exchange->rows > 2 && k < n; k++) {
        part[k] += begin * begin * whole[2 * n + k];
        part[n + k] += 2.0 * begin * width * whole[2 * n + k];
        part[2 * n + k] *= width * width;
    }
    return part;
}

/* Set the inputs of an FMU for one step of it. */
static enum outcome set_inputs(struct Exchange *exchange, const struct Member *member, double step)
{
    const struct Port *inputs = &member->inputs;
    const double *given = part_of(exchange, member);
    size_t n = member->entries;
    if (!member->ramps) {
        for (size_t k = 0; !member->shares && k < n; k++)
            inputs->values[k] = mean(given + k, n, exchange->rows);
        return write_port(exchange, inputs);
    }
    for (size_t k = 0; k < n; k++) {
        double slope = given[n + k];
        inputs->values[k] = given[k];
        if (exchange->rows > 2) {
            inputs->values[k] = given[k] + given[2 * n + k] * (-1.0 / 3.0);
            slope += given[2 * n + k] * (4.0 / 3.0);
        }
        inputs->slopes[k] = slope / step;
    }
    enum outcome outcome = write_port(exchange, inputs);
    return outcome == MADE ? write_slopes(exchange, inputs) : outcome;
}

/* Whether an event is at a time in s, to round-off of times that add up lengths of steps. */
static bool is_at_event(const struct Report *report, double now)
{
    return report->event || report->next_event <= now + NEIGHBOURS * (DBL_EPSILON * fabs(now));
}

/* Make a step of a unit; one that reports is not asked to go beyond its next event. */
static int make_unit_step(const struct Exchange *exchange, const struct Member *member, double time, double step)
{
    const bool goes_back = member->saved.state ? exchange->saved_at < time : exchange->goes_back;
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

/* Let a unit go over the step; one that was left inside it goes on from there. */
static enum outcome advance(struct Exchange *exchange, const struct Member *member)
{
    double time = exchange->times[exchange->first + exchange->made], step = exchange->step / (double)member->rate;
    if (exchange->part == 0)
        take(exchange, member);
    while (exchange->part < member->rate) {
        enum outcome outcome = set_inputs(exchange, member, step);
        if (outcome != MADE)
            return outcome;
        member->clock->time = time + (double)exchange->part * exchange->step / (double)member->rate;
        member->clock->steps++;
        exchange->part++;
        int status = make_unit_step(exchange, member, member->clock->time, step);
        restore_environment(exchange, member->make_step.number);
        if (status > WARNING || needs_a_look(member->make_step.report)) {
            exchange->unit_step = step;
            refused(exchange, member->make_step.number, status);
            return UNFINISHED;
        }
    }
    exchange->part = 0;
    return MADE;
}

#include "joint_closing.h"

/* Let the members of the turn go over the step, one or those that joints join; `next` is the turn behind. */
static enum outcome advance_turn(struct Exchange *exchange, size_t *next)
{
    struct Closing *closing = exchange->closing;
    bool is_joint = is_joined(exchange, exchange->turn);
    if (!is_joint && closing && exchange->in_turn && exchange->part == 0)
        exchange->sweeps++;
    *next = exchange->turn + (is_joint ? closing->member_count : 1);
    return is_joint ? close_joints(exchange) : advance(exchange, &exchange->members[exchange->turn]);
}

static enum outcome advance_all(struct Exchange *exchange)
{
    while (exchange->turn < exchange->member_count) {
        size_t next;
        enum outcome outcome = advance_turn(exchange, &next);
        for (size_t k = exchange->turn; outcome == MADE && exchange->in_turn && k < next; k++)
            outcome = read_port(exchange, &exchange->members[k].outputs);
        if (outcome != MADE)
            return outcome;
        for (; exchange->turn < next; exchange->turn++) {
            const struct Member *member = &exchange->members[exchange->turn];
            if (member->drives_later)
                interpolate(exchange, member->first_output, member->first_output + member->outputs.count);
        }
    }
    for (size_t k = 0; !exchange->in_turn && k < exchange->member_count; k++) {
        enum outcome outcome = read_port(exchange, &exchange->members[k].outputs);
        if (outcome != MADE)
            return outcome;
    }
    return MADE;
}

/* -- the end of a step -------------------------------------------------------------------------------------------- */

/* Add to each entry the integral of what it missed in this step. */
static void add_missed(struct Exchange *exchange)
{
    const double *present = exchange->known + exchange->outputs;
    if (exchange->output_rows > 1)
        interpolate(exchange, 0, exchange->outputs);
    if (!exchange->has_missed)
        memset(exchange->missed, 0, exchange->entry_count * sizeof(double));
    for (size_t m = 0; m < exchange->member_count; m++) {
        const struct Member *member = &exchange->members[m];
        for (size_t k = 0; k < member->entries; k++) {
            ptrdiff_t source = member->sources[k];
            if (!exchange->corrected[source])
                continue;
            double wanted = exchange->output_rows == 1
                                ? 0.5 * (present[source] + exchange->values[source])
                                : mean(exchange->polynomials + source, exchange->columns, exchange->output_rows);
            wanted = wanted * member->factors[k] + member->offsets[k];
            double applied = mean(member->taken + k, member->entries, exchange->rows);
            exchange->missed[member->first_entry + k] += exchange->step * (wanted - applied);
        }
    }
    exchange->has_missed = 1;
}

/* Record what holding and lines have missed in the step. */
static void judge(const struct Exchange *exchange)
{
    size_t n = exchange->outputs;
    const double *present = exchange->known + n, *earlier = present + n;
    const double *weights = exchange->extrapolation + exchange->known_rows * n;
    double *by_holding = missed_squares(exchange), *by_line = by_holding + n;
    for (size_t j = 0; j < n; j++) {
        double held = exchange->values[j] - present[j];
        double straight = held - (weights[n + j] * present[j] + weights[2 * n + j] * earlier[j]);
        by_holding[j] = FORGETTING * by_holding[j] + held * held;
        by_line[j] = FORGETTING * by_line[j] + straight * straight;
    }
}

/* Take the outputs as the present, and what was before as the past. */
static enum outcome go_on(struct Exchange *exchange)
{
    size_t n = exchange->outputs, bytes = n * sizeof(double);
    double *present = exchange->known + n, *rates = exchange->known + (exchange->known_rows - 1) * n;
    for (size_t k = 0; k < exchange->rate_count; k++) {
        const struct RateSource *source = &exchange->rate_sources[k];
        enum outcome outcome = read_rates(exchange, &source->port);
        if (outcome != MADE)
            return outcome;
        for (size_t j = 0; j < source->port.count; j++)
            rates[source->columns[j]] = source->port.rates[source->port.rate_places[j]];
    }
    for (size_t j = 0; exchange->takes_rates && j < n; j++)
        if (exchange->unknown[j])
            rates[j] = 0.0;
    if (exchange->adapts)
        judge(exchange);
    memmove(present + n, present, exchange->points * bytes);
    memcpy(exchange->before, present, bytes);
    memcpy(present, exchange->values, bytes);
    return MADE;
}

static double exchanged(const struct Exchange *exchange, const struct Side *side)
{
    double sum = exchange->before[side->output] + exchange->values[side->output];
    return 0.5 * exchange->step * (mean(side->taken, side->stride, exchange->rows) * sum);
}

/* Write the row of the end of the step: outputs, reactions of joints, then the residual energy of each bond. */
static void record(struct Exchange *exchange)
{
    size_t before = exchange->outputs + exchange->reaction_count, width = before + exchange->bond_count;
    double *row = exchange->recorded + (exchange->first_row + exchange->made) * width;
    memcpy(row, exchange->values, exchange->outputs * sizeof(double));
    for (size_t k = 0; k < exchange->reaction_count; k++)
        row[exchange->outputs + k] = exchange->reactions[k];
    for (size_t k = 0; k < exchange->bond_count; k++) {
        struct Bond *bond = &exchange->bonds[k];
        double got = exchanged(exchange, &bond->taker), given = exchanged(exchange, &bond->giver);
        bond->residual += got - given;
        bond->exchanged += 0.5 * (fabs(got) + fabs(given));
        row[before + k] = bond->residual;
    }
}

static void begin_sweep(struct Exchange *exchange)
{
    exchange->turn = 0;
    exchange->part = 0;
    exchange->sweeps += !exchange->closing; /* which counts its own */
}

#include "iteration.h"

static enum outcome make_step(struct Exchange *exchange)
{
    if (!exchange->under_way) {
        exchange->under_way = 1;
        begin_sweep(exchange);
        extrapolate(exchange);
        if (exchange->columns > exchange->outputs)
            follow_signals(exchange);
        enum outcome outcome = exchange->iteration ? begin_iteration(exchange) : MADE;
        if (outcome != MADE)
            return outcome;
    }
    enum outcome outcome = exchange->iteration ? iterate(exchange) : advance_all(exchange);
    if (outcome != MADE)
        return outcome;
    if (exchange->corrects)
        add_missed(exchange);
    outcome = go_on(exchange);
    if (outcome != MADE)
        return outcome;
    for (size_t j = 0; j < exchange->outputs; j++)
        if (!isfinite(exchange->values[j]))
            return NOT_FINITE;
    record(exchange);
    exchange->under_way = 0;
    return MADE;
}

/* Set inputs of an FMU that asks for them inside its step: the intermediate update of FMI 3.0. */
EXPORTED void mbsfmu_set_within(void *environment, double time, bool set_requested, bool get_allowed, bool finished,
                                bool can_return, bool *early, double *early_time)
{
    struct Ramp *ramp = environment;
    (void)get_allowed, (void)finished, (void)can_return, (void)early_time;
    *early = false;
    if (!set_requested || !ramp->component)
        return;
    double elapsed = time - ramp->clock->time, *buffer = ramp->group.buffer;
    for (size_t k = 0; k < ramp->group.count; k++) {
        ptrdiff_t place = ramp->group.places[k];
        if (place >= 0)
            buffer[k] = ramp->values[place] + elapsed * ramp->slopes[place];
    }
    int status = access(ramp->component, &ramp->group, &ramp->group.set);
    if (status > WARNING)
        ramp->report->trouble = status;
}

#ifndef INSIDE_FMU

/* Time in s from some moment on. */
static double now(void)
{
#ifdef _WIN32
    return 1e-3 * (double)GetTickCount64();
#else
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return (double)moment.tv_sec + 1e-9 * (double)moment.tv_nsec;
#endif
}

/* Sizes of all structures, for who fills them. */
EXPORTED size_t mbsfmu_exchange_size(void)
{
    return STRUCTURE_SIZES;
}

/* The environment of this thread, and another one for it. */
EXPORTED unsigned mbsfmu_environment(void)
{
    return environment();
}

EXPORTED void mbsfmu_set_environment(unsigned wanted)
{
    set_environment(wanted);
}

/* Make steps until so many are made, or patience is at its end, or something needs a look. */
EXPORTED int mbsfmu_exchange(struct Exchange *exchange, size_t count)
{
    double begin = now();
    exchange->environment = environment();
    if (exchange->closing && !exchange->under_way)
        exchange->closing->knows_motions = 0; /* units may have been set since */
    while (exchange->made < count) {
        enum outcome outcome = make_step(exchange);
        if (outcome != MADE)
            return outcome;
        exchange->made++;
        if (now() - begin > exchange->patience)
            break;
    }
    return MADE;
}

#endif
