/* Inverse of a Jacobian with Broyden's updates: mbsfmu/cosim/coupling/interface_inverse.py. */

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

/* Take the updates into the matrix. */
static void fold(struct Inverse *inverse)
{
    for (size_t j = 0; inverse->updates && j < inverse->count; j++)
        apply_updates(inverse, inverse->columns + j * inverse->count);
    inverse->updates = 0;
}

#endif
