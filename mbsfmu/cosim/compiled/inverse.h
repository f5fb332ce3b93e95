/* Inverse of a Jacobian with Broyden's updates, or learned: mbsfmu/cosim/coupling/iterated_coupling.py, learned_inverse.py. */

#ifndef INVERSE_H
#define INVERSE_H

#include <math.h>
#include <stddef.h>

#include "layout.h"

static double inner_product(const double *one, const double *other, size_t count)
{
    double sum = count ? one[0] * other[0] : 0.0;
    for (size_t k = 1; k < count; k++)
        sum += one[k] * other[k];
    return sum;
}

/* Apply the updates to a vector. */
static void apply_updates(const struct Inverse *inverse, double *vector)
{
    size_t n = inverse->count;
    for (size_t k = 0; k < inverse->updates; k++) {
        const double *move = inverse->moves + k * n;
        double along = inner_product(inverse->weights + k * n, vector, n);
        for (size_t i = 0; i < n; i++)
            vector[i] += move[i] * along;
    }
}

/* The inverse times a vector. */
static void apply(const struct Inverse *inverse, const double *vector, double *result)
{
    size_t n = inverse->count;
    for (size_t i = 0; i < n; i++)
        result[i] = 0.0;
    for (size_t j = 0; j < n; j++) {
        const double *column = inverse->columns + j * n, factor = vector[j];
        for (size_t i = 0; i < n; i++)
            result[i] += column[i] * factor;
    }
    apply_updates(inverse, result);
}

/* Add Broyden's update for the last change, which has led from the last residual to another one, unless it says
 * nothing. */
static void update(struct Inverse *inverse, const double *change, const double *residual, const double *last,
                   const double *scales)
{
    size_t n = inverse->count;
    if (inverse->updates == inverse->most)
        return;
    double *weight = inverse->weights + inverse->updates * n, *move = inverse->moves + inverse->updates * n;
    double *difference = inverse->room, *expected = inverse->room + n;
    for (size_t i = 0; i < n; i++) {
        weight[i] = change[i] / (scales[i] * scales[i]);
        difference[i] = residual[i] - last[i];
    }
    double squared = inner_product(change, weight, n);
    if (!(squared > inverse->worth))
        return;
    apply(inverse, difference, expected);
    double along = inner_product(weight, expected, n);
    if (!(fabs(along) > inverse->least * squared))
        return;
    for (size_t i = 0; i < n; i++)
        move[i] = (change[i] - expected[i]) / along;
    inverse->updates++;
}

/* Let the covariance of the Jacobian fall along what was seen, and rise along all directions. */
static void learn_covariance(struct Inverse *inverse, const double *weight, double variance)
{
    size_t n = inverse->count;
    double *covariance = inverse->covariance, largest = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            covariance[i * n + j] -= weight[i] * weight[j] / variance;
    for (size_t i = 0; i < n; i++) {
        covariance[i * n + i] += inverse->drift;
        if (covariance[i * n + i] > largest)
            largest = covariance[i * n + i];
    }
    for (size_t k = 0; largest > 1.0 && k < n * n; k++)
        covariance[k] /= largest;
}

/* Learn from the last change, which has led from the last residual to another one, unless it says nothing. */
static void learn(struct Inverse *inverse, const double *change, const double *residual, const double *last)
{
    size_t n = inverse->count;
    double *direction = inverse->room, *missed = direction + n, *weight = missed + n, *move = weight + n;
    double squared = inner_product(change, change, n), length = sqrt(squared);
    if (!(squared > 0.0))
        return;
    for (size_t i = 0; i < n; i++) {
        direction[i] = change[i] / length;
        move[i] = (residual[i] - last[i]) / length;
    }
    for (size_t i = 0; i < n; i++)
        weight[i] = inner_product(inverse->covariance + i * n, direction, n);
    double variance = inverse->noise + inner_product(direction, weight, n);
    apply(inverse, move, missed);
    for (size_t i = 0; i < n; i++)
        missed[i] = direction[i] - missed[i];
    double along = variance - inner_product(weight, missed, n);
    if (!(fabs(along) > inverse->least * variance))
        return;
    for (size_t i = 0; i < n; i++)
        move[i] = missed[i] / along;
    for (size_t j = 0; j < n; j++) {
        double *column = inverse->columns + j * n, share = inner_product(column, weight, n);
        for (size_t i = 0; i < n; i++)
            column[i] += move[i] * share;
    }
    learn_covariance(inverse, weight, variance);
}

#endif
