/* Joints closed at the end of a step: mbsfmu/cosim/joints/joint_closing.py and joint_trials.py. */

#ifndef JOINT_CLOSING_H
#define JOINT_CLOSING_H

#include "inverse.h"
#include "joint_equations.h"
#include "states.h"

static bool is_joined(const struct Exchange *exchange, size_t member)
{
    const struct Closing *closing = exchange->closing;
    return closing && member >= closing->first_member && member < closing->first_member + closing->member_count;
}

static struct Member *joined(const struct Exchange *exchange, size_t number)
{
    return &exchange->members[exchange->closing->first_member + number];
}

/* -- motions ------------------------------------------------------------------------------------------------------ */

static enum outcome read_motion(struct Exchange *exchange, const struct Handle *handle)
{
    enum outcome outcome = read_port(exchange, &handle->port);
    for (size_t k = 0; outcome == MADE && k < handle->port.count; k++)
        handle->motion[handle->motion_places[k]] = handle->port.values[k];
    return outcome;
}

/* Read the motions of all handles. */
static enum outcome read_motions(struct Exchange *exchange)
{
    const struct Closing *closing = exchange->closing;
    enum outcome outcome = MADE;
    for (size_t j = 0; j < closing->joint_count; j++)
        for (size_t side = 0; outcome == MADE && side < 2; side++)
            outcome = read_motion(exchange, &closing->joints[j].handles[side]);
    return outcome;
}

/* Find the rows of all joints, shape (2, count, 6), and if wanted what they are open by with its rates. */
static void find_equations(const struct Exchange *exchange, double *rows, double *residual)
{
    const struct Closing *closing = exchange->closing;
    for (size_t j = 0; j < closing->joint_count; j++) {
        const struct Joint *joint = &closing->joints[j];
        double *begins = rows + WRENCH * joint->first, *ends = begins + WRENCH * closing->count;
        struct pose pose;
        find_pose(joint, &pose);
        find_rows(joint, &pose, begins, ends);
        if (!residual)
            continue;
        find_gap(joint, &pose, residual + joint->first);
        for (size_t k = 0; k < joint->count; k++) {
            double first = along(begins + WRENCH * k, joint->handles[0].motion);
            double second = along(ends + WRENCH * k, joint->handles[1].motion);
            residual[closing->count + joint->first + k] = exchange->step * (first + second);
        }
    }
}

/* -- trials ------------------------------------------------------------------------------------------------------- */

/* Write the wrenches of multipliers into the polynomials. */
static void load(const struct Exchange *exchange, const double *multipliers)
{
    const struct Closing *closing = exchange->closing;
    double begin[WRENCH], end[WRENCH];
    for (size_t j = 0; j < closing->joint_count; j++) {
        const struct Joint *joint = &closing->joints[j];
        for (size_t side = 0; side < 2; side++) {
            const struct Handle *handle = &joint->handles[side];
            size_t place = WRENCH * (side * closing->count + joint->first);
            find_wrench(closing->at_begin + place, multipliers + joint->first, joint->count, begin);
            find_wrench(closing->at_end + place, multipliers + closing->count + joint->first, joint->count, end);
            for (size_t k = 0; k < handle->load_count; k++) {
                double from = begin[handle->load_places[k]], to = end[handle->load_places[k]];
                double slope = handle->widening * (to - from);
                exchange->polynomials[handle->columns[k]] = 0.5 * (from + to - slope);
                exchange->polynomials[exchange->columns + handle->columns[k]] = slope;
            }
        }
    }
}

/* Begin a step from where the units are. */
static enum outcome begin_trials(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    size_t length = 2 * closing->count * WRENCH;
    exchange->saved_at = exchange->times[exchange->first + exchange->made];
    for (size_t k = 0; k < closing->member_count; k++) {
        enum outcome outcome = save_member(exchange, joined(exchange, k));
        if (outcome != MADE)
            return outcome;
    }
    enum outcome outcome = closing->knows_motions ? MADE : read_motions(exchange);
    if (outcome != MADE)
        return outcome;
    find_equations(exchange, closing->at_begin, NULL);
    size_t known = closing->rows_length == exchange->step ? closing->rows_known : 0;
    double *last = closing->before, *second = last + length;
    for (size_t k = 0; k < length; k++) {
        double now = closing->at_begin[k];
        closing->at_end[k] = known == 0 ? now : known == 1 ? 2.0 * now - last[k] : 3.0 * (now - last[k]) + second[k];
    }
    memcpy(second, last, length * sizeof(double));
    memcpy(last, closing->at_begin, length * sizeof(double));
    closing->rows_known = known < 2 ? known + 1 : 2;
    closing->rows_length = exchange->step;
    closing->knows_motions = 0;
    closing->is_open = closing->follows = 1;
    return MADE;
}

/* Make the step with the multipliers, and find what the joints are open by at its end; goes on where it was left. */
static enum outcome evaluate(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    enum outcome outcome = MADE;
    if (!closing->is_under_way) {
        closing->is_under_way = 1;
        closing->next = 0;
        exchange->sweeps++;
        load(exchange, closing->multipliers);
        closing->rollbacks += !closing->is_open;
        for (size_t k = 0; outcome == MADE && !closing->is_open && k < closing->member_count; k++)
            outcome = restore_member(exchange, joined(exchange, k));
        closing->is_open = 0;
    }
    for (; outcome == MADE && closing->next < closing->member_count; closing->next += outcome == MADE)
        outcome = advance(exchange, joined(exchange, closing->next));
    if (outcome == MADE)
        outcome = read_motions(exchange);
    if (outcome != MADE)
        return outcome;
    closing->is_under_way = 0;
    find_equations(exchange, closing->follows ? closing->following : closing->rows, closing->residual);
    return MADE;
}

/* Take the directions of the wrench at the end of the step from the first trial; by what they change at most. */
static double follow(struct Closing *closing)
{
    size_t length = 2 * closing->count * WRENCH;
    double most = 0.0;
    for (size_t k = 0; closing->follows && k < length; k++) {
        double change = fabs(closing->following[k] - closing->at_end[k]);
        if (!(change <= most) && !isnan(most))
            most = change;
        closing->at_end[k] = closing->following[k];
    }
    closing->follows = 0;
    return most;
}

/* -- multipliers -------------------------------------------------------------------------------------------------- */

/* Let the multipliers of the last steps go on, without what had no effect where the Jacobian was found. */
static void predict(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    size_t n = closing->count, m = 2 * n;
    const double *last = closing->lines, *before = last + m, *first = before + m;
    double *found = closing->multipliers, *whole = closing->change; /* which nothing needs before the first correction */
    for (size_t k = 0; k < m; k++) {
        if (closing->length == exchange->step && closing->known > 1) {
            whole[k] = closing->known == closing->remembered ? 3.0 * (last[k] - before[k]) + first[k]
                                                             : 2.0 * last[k] - before[k];
            continue;
        }
        double end = last[n + k % n];
        double slope = closing->length != 0.0 ? (end - last[k % n]) / closing->length : 0.0 * end;
        whole[k] = k < n ? end : end + exchange->step * slope;
    }
    if (!closing->inverse.is_known) {
        memcpy(found, whole, m * sizeof(double));
        return;
    }
    for (size_t k = 0; k < m; k++)
        found[k] = 0.0;
    for (size_t r = 0; r < closing->rank; r++) {
        const double *direction = closing->directions + r * m;
        double share = inner_product(direction, whole, m);
        for (size_t k = 0; k < m; k++)
            found[k] += direction[k] * share;
    }
}

/* Largest residual as a share of its limit, NaN if one is. */
static double largest_share(const struct Closing *closing)
{
    double size = 0.0;
    for (size_t k = 0; k < 2 * closing->count; k++) {
        double share = fabs(closing->residual[k]) / closing->limits[k];
        if (!(share <= size) && !isnan(size))
            size = share;
    }
    return size;
}

/* Correct the multipliers, which lets the wrench turn in the first correction of a step. */
static void correct(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    size_t m = 2 * closing->count;
    double squared = exchange->step * exchange->step;
    apply(&closing->inverse, closing->residual, closing->change);
    for (size_t k = 0; k < m; k++) {
        closing->change[k] = -closing->change[k];
        closing->multipliers[k] += closing->change[k] / squared;
        closing->last[k] = closing->residual[k];
    }
    closing->learns = follow(closing) <= closing->most_turned;
}

/* Take the multipliers of an accepted step. */
static void take_multipliers(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    size_t m = 2 * closing->count;
    double begin[WRENCH], end[WRENCH];
    memmove(closing->lines + m, closing->lines, (closing->remembered - 1) * m * sizeof(double));
    memcpy(closing->lines, closing->multipliers, m * sizeof(double));
    closing->known = closing->length != exchange->step ? 1 : closing->known + (closing->known < closing->remembered);
    closing->length = exchange->step;
    for (size_t j = 0; j < closing->joint_count; j++) {
        const struct Joint *joint = &closing->joints[j];
        size_t place = WRENCH * (closing->count + joint->first);
        find_wrench(closing->at_begin + place, closing->multipliers + joint->first, joint->count, begin);
        find_wrench(closing->at_end + place, closing->multipliers + closing->count + joint->first, joint->count, end);
        for (size_t i = 0; i < WRENCH; i++)
            exchange->reactions[WRENCH * j + i] = 0.5 * (begin[i] + end[i]);
    }
}

/* Find the multipliers that close the joints at the end of the step, and make the step; goes on where it was left. */
static enum outcome close_joints(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    enum outcome outcome;
    if (!closing->is_begun) {
        outcome = begin_trials(exchange);
        if (outcome != MADE)
            return outcome;
        predict(exchange);
        closing->is_begun = 1;
        closing->made = closing->is_compared = closing->is_fresh = closing->learns = 0;
        closing->is_under_way = 0;
        closing->size = INFINITY;
    }
    while (true) {
        if (!closing->is_compared) {
            outcome = evaluate(exchange);
            if (outcome != MADE)
                return outcome;
            if (closing->learns)
                learn(&closing->inverse, closing->change, closing->residual, closing->last);
            closing->size_before = closing->size;
            closing->size = largest_share(closing);
            closing->is_compared = 1;
        }
        if (closing->made == closing->maximum)
            return NO_CONVERGENCE;
        if (closing->size <= 1.0) {
            take_multipliers(exchange);
            closing->knows_motions = 1;
            closing->is_begun = 0;
            return MADE;
        }
        bool is_slow = closing->made > 1 && !(closing->size < closing->slow * closing->size_before);
        if (!closing->inverse.is_known || (!closing->is_fresh && is_slow))
            return NO_JACOBIAN;
        correct(exchange);
        closing->made++;
        closing->is_compared = 0;
    }
}

/* -- differences -------------------------------------------------------------------------------------------------- */

#ifndef INSIDE_FMU

/* Let the two units of a joint make the step with other multipliers. */
static enum outcome try_again(struct Exchange *exchange, const struct Joint *joint, const double *multipliers)
{
    const size_t members[2] = {joint->handles[0].member, joint->handles[1].member};
    const size_t count = members[0] == members[1] ? 1 : 2;
    enum outcome outcome = MADE;
    load(exchange, multipliers);
    for (size_t k = 0; outcome == MADE && k < count; k++)
        outcome = restore_member(exchange, joined(exchange, members[k]));
    for (size_t k = 0; outcome == MADE && k < count; k++)
        outcome = advance(exchange, joined(exchange, members[k]));
    return outcome == MADE ? read_motions(exchange) : outcome;
}

/* Find the derivatives of the residual by the multipliers, by central differences, where no unit needs a look. */
EXPORTED int mbsfmu_differences(struct Exchange *exchange)
{
    struct Closing *closing = exchange->closing;
    size_t n = closing->count, m = 2 * n;
    double *moved = closing->last, *found = closing->change; /* which are written again before they are needed */
    enum outcome outcome = MADE;
    for (size_t j = 0; j < closing->joint_count; j++) {
        const struct Joint *joint = &closing->joints[j];
        for (size_t column = 0; column < m; column++) {
            if (column % n < joint->first || column % n >= joint->first + joint->count)
                continue;
            double perturbation = closing->perturbations[column];
            memcpy(moved, closing->multipliers, m * sizeof(double));
            moved[column] += perturbation;
            outcome = try_again(exchange, joint, moved);
            if (outcome != MADE)
                return outcome;
            find_equations(exchange, closing->rows, found);
            for (size_t k = 0; k < m; k++)
                closing->jacobian[m * k + column] = found[k];
            moved[column] = closing->multipliers[column];
            moved[column] += -1.0 * perturbation;
            outcome = try_again(exchange, joint, moved);
            if (outcome != MADE)
                return outcome;
            find_equations(exchange, closing->rows, found);
            for (size_t k = 0; k < m; k++)
                closing->jacobian[m * k + column] =
                    (closing->jacobian[m * k + column] - found[k]) / (2.0 * perturbation);
        }
        outcome = try_again(exchange, joint, closing->multipliers);
        if (outcome != MADE)
            return outcome;
    }
    return MADE;
}

#endif

#endif
