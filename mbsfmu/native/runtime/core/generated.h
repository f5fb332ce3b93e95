/* What functions need that are generated from the equations of a model. */
#ifndef MBSFMU_GENERATED_H
#define MBSFMU_GENERATED_H

#include <math.h>
#include <stddef.h>
#include <string.h>

/* PIECE: of a function that is long because it is generated; compilers must not put it together again.
 * FLAT: a function that is to be compiled anew for the sizes at each place where it is called. */
#if defined(__GNUC__)
#define PIECE __attribute__((noinline))
#define FLAT inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define PIECE __declspec(noinline)
#define FLAT __forceinline
#else
#define PIECE
#define FLAT
#endif

#include "extrema.h"

/* -- Newton's iteration for an algebraic loop, as mbsfmu/tracing/solved_equations.py makes it, which says more ------ */

/* A trial: from where the iteration is, the increment there, the sum of squares of the residuals, that of the increments by
 * the magnitudes, and the share that is tried, to the same behind it. */
typedef void (*Trial)(const double *state, const double *numbers, double *next);

/* Solve from a guess; `found` becomes NaN where that leads nowhere, and `off` how far the equations stay off, else 0. `room`
 * is for two states. */
static inline void solve_loop(
    int size, Trial trial, const double *guess, const double *numbers, double *room, double *found, double *off
) {
    double *state = room, *next = room + 2 * size + 3;
    for (int i = 0; i < size; i++) {
        state[i] = guess[i];
        state[size + i] = 0.0;
    }
    state[2 * size] = state[2 * size + 1] = INFINITY;
    state[2 * size + 2] = 0.5;
    for (int k = 0; k < LOOP_TRIALS; k++) {
        const double left = state[2 * size + 1], share = state[2 * size + 2];
        double *const last = state;
        if (left <= LOOP_SMALL * LOOP_SMALL || (left <= LOOP_ROUND_OFF * LOOP_ROUND_OFF && share < 1.0)) break;
        trial(state, numbers, next);
        state = next;
        next = last;
    }
    const int made = state[2 * size + 1] <= LOOP_ROUND_OFF * LOOP_ROUND_OFF;
    for (int i = 0; i < size; i++) found[i] = made ? state[i] : NAN;
    *off = made ? 0.0 : sqrt(state[2 * size]);
}

#endif
