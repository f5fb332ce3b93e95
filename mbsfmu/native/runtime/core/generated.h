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
#include "loop_solver.h"

#endif
