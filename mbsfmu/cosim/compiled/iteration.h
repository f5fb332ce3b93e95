/* Steps that are repeated until interface values agree: mbsfmu/cosim/coupling/iterated.py and its classes. */

#ifndef ITERATION_H
#define ITERATION_H

/* -- states ------------------------------------------------------------------------------------------------------- */

static enum outcome save_all(struct Exchange *exchange)
{
    for (size_t k = 0; k < exchange->member_count; k++) {
        struct Member *member = &exchange->members[k];
        struct SavedState *saved = &member->saved;
        int status = saved->get.function(member->inputs.component, saved->state);
        if (status > WARNING)
            return refused(exchange, saved->get.number, status);
        if (member->make_step.report)
            saved->next_event = member->make_step.report->next_event;
    }
    return MADE;
}

static enum outcome restore_all(struct Exchange *exchange)
{
    exchange->iteration->rollbacks++;
    for (size_t k = 0; k < exchange->member_count; k++) {
        const struct Member *member = &exchange->members[k];
        struct Report *report = member->make_step.report;
        int status = member->saved.set.function(member->inputs.component, *member->saved.state);
        if (status > WARNING)
            return refused(exchange, member->saved.set.number, status);
        if (report) {
            report->next_event = member->saved.next_event;
            report->event = report->ends = false;
        }
    }
    return MADE;
}

/* -- the interface ------------------------------------------------------------------------------------------------ */

static double inner_product(const double *one, const double *other, size_t count)
{
    double sum = count ? one[0] * other[0] : 0.0;
    for (size_t k = 1; k < count; k++)
        sum += one[k] * other[k];
    return sum;
}

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

/* The inverse of the Jacobian times a vector. */
static void apply(const struct Iteration *iteration, const double *vector, double *result)
{
    size_t n = iteration->count;
    for (size_t i = 0; i < n; i++)
        result[i] = 0.0;
    for (size_t j = 0; j < n; j++) {
        const double *column = iteration->inverse + j * n, factor = vector[j];
        for (size_t i = 0; i < n; i++)
            result[i] += column[i] * factor;
    }
    for (size_t k = 0; k < iteration->updates; k++) {
        const double *move = iteration->moves + k * n;
        double along = inner_product(iteration->weights + k * n, result, n);
        for (size_t i = 0; i < n; i++)
            result[i] += move[i] * along;
    }
}

/* Add Broyden's update for the last change, unless it says nothing. */
static void update(struct Iteration *iteration)
{
    size_t n = iteration->count;
    if (iteration->updates == iteration->most)
        return;
    double *weight = iteration->weights + iteration->updates * n, *move = iteration->moves + iteration->updates * n;
    double *difference = iteration->room, *expected = iteration->room + n;
    for (size_t i = 0; i < n; i++) {
        weight[i] = iteration->change[i] / (iteration->scales[i] * iteration->scales[i]);
        difference[i] = iteration->residual[i] - iteration->last[i];
    }
    double squared = inner_product(iteration->change, weight, n);
    if (!(squared > iteration->worth))
        return;
    apply(iteration, difference, expected);
    double along = inner_product(weight, expected, n);
    if (!(fabs(along) > iteration->least * squared))
        return;
    for (size_t i = 0; i < n; i++)
        move[i] = (iteration->change[i] - expected[i]) / along;
    iteration->updates++;
}

/* Find what is added to the trial; the Jacobian is made by who called, who goes on then. */
static enum outcome correct_by_newton(struct Iteration *iteration, double size)
{
    bool is_slow = iteration->made > 1 && size > iteration->slow * iteration->size;
    bool is_full = iteration->made > 0 && iteration->updates == iteration->most;
    if (iteration->is_renewed)
        iteration->is_renewed = 0;
    else if (!iteration->is_known || (!iteration->is_fresh && (is_slow || is_full)))
        return NO_JACOBIAN;
    else if (iteration->made > 0)
        update(iteration);
    iteration->size = size;
    apply(iteration, iteration->residual, iteration->change);
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
    iteration->begin = exchange->times[exchange->first + exchange->made];
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
        if (iteration->inverse)
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
