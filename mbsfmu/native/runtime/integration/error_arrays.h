/* How errors of steps are stored. */
#ifndef MBSFMU_ERROR_ARRAYS_H
#define MBSFMU_ERROR_ARRAYS_H

#define ERROR_RATES (2 * COORDINATES + STATES)

/* Where each error stands: of z, z', z'', x and x', and of p and p' or of the multipliers among the unknowns. */
#define OF_Z(error) (error)
#define OF_V(error) ((error) + COORDINATES)
#define OF_A(error) ((error) + 2 * COORDINATES)
#define OF_X(error) ((error) + 3 * COORDINATES)
#define OF_RATES(error) ((error) + 3 * COORDINATES + STATES)
#define OF_MOMENTA(error) ((error) + 3 * COORDINATES + 2 * STATES)
#define OF_MULTIPLIERS(error) OF_MOMENTA(error)

#if ERROR > 0
/* Where the mean changes of the errors of multipliers stand, behind what is remembered of the rates. */
#define CHANGES_OF(history) ((history) + 4 * ERROR_RATES)

/* The error is not known from here on; the first reason is the cause of later ones. */
static inline void lose_error(State *state, int loss) {
    double *const reason = &state->error_record[ERROR_RECORD - 1];
    if (*reason == 0.0) *reason = loss;
}
#endif

#endif
