/* Steps that are repeated until interface values agree: mbsfmu/cosim/coupling/iterated_coupling.py and its classes. */

#ifndef ITERATION_H
#define ITERATION_H

#include "inverse.h"
#include "states.h"

static enum outcome save_all(struct Exchange *exchange)
{
    enum outcome outcome = MADE;
    exchange->saved_at = exchange->times[exchange->first + exchange->made];
    for (size_t k = 0; outcome == MADE && k < exchange->member_count; k++)
        outcome = save_member(exchange, &exchange->members[k]);
    return outcome;
}

static enum outcome restore_all(struct Exchange *exchange)
{
    enum outcome outcome = MADE;
    exchange->iteration->rollbacks++;
    for (size_t k = 0; outcome == MADE && k < exchange->member_count; k++)
        outcome = restore_member(exchange, &exchange->members[k]);
    return outcome;
}

/* -- the interface ------------------------------------------------------------------------------------------------ */

/* Compare what a sweep has reached with the trial; the largest residual as a share of its scale, NaN if one is. */
static double compare(const struct Exchange *exchange)
{
    const struct Iteration *iteration = exchange->iteration;
    double size = 0.0;
    for (size_t k = 0; k < iteration->count; k++) {
        double found = exchange->values[iteration->columns[k]], magnitude = fabs(found);
        double scale = magnitude <= iteration->magnitudes[k] ? iteration->magnitudes[k] : magnitude;
        iteration->residual[k] = found - iteration->trial[iteration->columns[k]];
        iteration->scales[k] = scale;
        double share = fabs(iteration->residual[k]) / scale;
        if (!(share <= size) && !isnan(size))
            size = share;
    }
    return size;
}

/* -- Newton's iteration ------------------------------------------------------------------------------------------- */

/* Find what is added to the trial; the Jacobian is made by who called, who goes on then. */
static enum outcome correct_by_newton(struct Iteration *iteration, double size)
{
    bool is_slow = iteration->made > 1 && size > iteration->slow * iteration->size;
    bool is_full = iteration->made > 0 && iteration->inverse.updates == iteration->inverse.most;
    if (iteration->is_renewed)
        iteration->is_renewed = 0;
    else if (!iteration->inverse.is_known || (!iteration->is_fresh && (is_slow || is_full)))
        return NO_JACOBIAN;
    else if (iteration->made > 0)
        update(&iteration->inverse, iteration->change, iteration->residual, iteration->last, iteration->scales);
    iteration->size = size;
    apply(&iteration->inverse, iteration->residual, iteration->change);
    for (size_t k = 0; k < iteration->count; k++) {
        iteration->change[k] = -iteration->change[k];
        iteration->last[k] = iteration->residual[k];
        iteration->trial[iteration->columns[k]] += iteration->change[k];
    }
    return MADE;
}

/* -- fixed-point iteration ---------------------------------------------------------------------------------------- */

static void correct_by_relaxation(struct Iteration *iteration)
{
    double squared = 0.0, product = 0.0;
    for (size_t k = 0; k < iteration->count; k++) {
        double scaled = iteration->residual[k] / iteration->scales[k], change = scaled - iteration->last[k];
        squared = k ? squared + change * change : change * change;
        product = k ? product + iteration->last[k] * change : iteration->last[k] * change;
        iteration->last[k] = scaled;
    }
    if (iteration->made > 0 && iteration->adapts) {
        double factor = iteration->relaxation;
        if (squared > 0.0)
            factor *= -product / squared;
        factor = factor < iteration->least_relaxation ? iteration->least_relaxation : factor;
        iteration->relaxation = factor > iteration->most_relaxation ? iteration->most_relaxation : factor;
    }
    for (size_t k = 0; k < iteration->count; k++)
        iteration->trial[iteration->columns[k]] += iteration->relaxation * iteration->residual[k];
}

/* -- the step ----------------------------------------------------------------------------------------------------- */

/* Take what extrapolates as the trial, and keep the states. */
static enum outcome begin_iteration(struct Exchange *exchange)
{
    struct Iteration *iteration = exchange->iteration;
    for (size_t j = 0; j < exchange->outputs; j++) {
        iteration->trial[j] = exchange->polynomials[j];
        for (size_t row = 1; row < exchange->rows; row++)
            iteration->trial[j] += exchange->polynomials[row * exchange->columns + j];
    }
    iteration->made = iteration->is_fresh = iteration->is_renewed = iteration->is_compared = 0;
    iteration->relaxation = iteration->kept_relaxation;
    interpolate_to(exchange, iteration->trial, 0, exchange->outputs);
    return save_all(exchange);
}

static void accept(struct Exchange *exchange)
{
    struct Iteration *iteration = exchange->iteration;
    iteration->kept_relaxation = iteration->relaxation;
    for (size_t k = 0; k < iteration->count; k++) {
        double magnitude = fabs(exchange->values[iteration->columns[k]]);
        if (magnitude > iteration->magnitudes[k])
            iteration->magnitudes[k] = magnitude;
    }
}

/* Sweep until the interface values agree; goes on where it was left. */
static enum outcome iterate(struct Exchange *exchange)
{
    struct Iteration *iteration = exchange->iteration;
    while (true) {
        if (!iteration->is_compared) {
            enum outcome outcome = advance_all(exchange);
            if (outcome != MADE)
                return outcome;
            iteration->found = compare(exchange);
            iteration->is_compared = 1;
        }
        if (iteration->found <= iteration->tolerance) {
            accept(exchange);
            return MADE;
        }
        enum outcome outcome = MADE;
        if (iteration->inverse.columns)
            outcome = correct_by_newton(iteration, iteration->found);
        else
            correct_by_relaxation(iteration);
        if (outcome == MADE && ++iteration->made == iteration->maximum)
            return NO_CONVERGENCE;
        if (outcome == MADE)
            outcome = restore_all(exchange);
        if (outcome != MADE)
            return outcome;
        iteration->is_compared = 0;
        begin_sweep(exchange);
        interpolate_to(exchange, iteration->trial, 0, exchange->outputs);
    }
}

#endif
