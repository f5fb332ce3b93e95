/* How errors of steps are stored. */
#ifndef MBSFMU_ERROR_ARRAYS_H
#define MBSFMU_ERROR_ARRAYS_H

#define ERROR_RATES (2 * COORDINATES + STATES)

/* Where each error stands: of z, z', z'', x and x'. */
#define OF_Z(error) (error)
#define OF_V(error) ((error) + COORDINATES)
#define OF_A(error) ((error) + 2 * COORDINATES)
#define OF_X(error) ((error) + 3 * COORDINATES)
#define OF_RATES(error) ((error) + 3 * COORDINATES + STATES)

#endif
