/* Numbers of several machines side by side, one a lane: vectors of GCC and Clang, as wide as the processor's registers. */
#ifndef MBSFMU_LANES_H
#define MBSFMU_LANES_H

#include "runtime.h"
#include "lane_width.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef double Lanes __attribute__((vector_size(8 * LANES)));
/* All bits of a lane are set where something is true; also integers by lane. */
typedef int64_t Mask __attribute__((vector_size(8 * LANES)));

#define ALL_LANES ((1u << LANES) - 1u)

static inline Lanes splat(double value) { return value - (Lanes){0}; }
static inline Mask splat_integer(int64_t value) { return value - (Mask){0}; }
static inline Lanes select_lanes(Mask mask, Lanes one, Lanes other) {
    return (Lanes)((mask & (Mask)one) | (~mask & (Mask)other));
}
static inline Mask select_integers(Mask mask, Mask one, Mask other) { return (mask & one) | (~mask & other); }

/* Which lanes of a mask are set, a bit each. */
static inline unsigned bits_of(Mask mask) {
#if LANES == 8 && defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask);
#elif LANES == 4 && defined(__AVX2__)
    return (unsigned)_mm256_movemask_pd((__m256d)mask);
#else
    unsigned bits = 0;
    for (int lane = 0; lane < LANES; lane++) bits |= (unsigned)(mask[lane] != 0) << lane;
    return bits;
#endif
}

#define EVERYWHERE splat_integer(-1)
#define NOWHERE splat_integer(0)

static inline int any(Mask mask) { return bits_of(mask) != 0; }
static inline Mask where_all(int condition) { return splat_integer(-(int64_t)(condition != 0)); }
static inline Mask lanes_finite(Lanes a) { return a - a == (Lanes){0}; }

/* The mask of bits. */
static inline Mask mask_of(unsigned bits) {
    Mask mask;
    for (int lane = 0; lane < LANES; lane++) mask[lane] = -(int64_t)(bits >> lane & 1u);
    return mask;
}

/* Truths as numbers, which CasADi takes them for. */
static inline Lanes truth(Mask mask) { return (Lanes)(mask & (Mask)splat(1.0)); }
static inline Mask is_true(Lanes value) { return value != (Lanes){0}; }
static inline Lanes where_true(Lanes condition, Lanes value) { return (Lanes)(is_true(condition) & (Mask)value); }

static inline Lanes lanes_larger(Lanes a, Lanes b) { return select_lanes(a > b, a, b); }
static inline Lanes lanes_smaller(Lanes a, Lanes b) { return select_lanes(a < b, a, b); }
static inline Lanes lanes_fabs(Lanes a) { return (Lanes)((Mask)a & splat_integer(INT64_MAX)); }
static inline Lanes lanes_copysign(Lanes a, Lanes b) {
    return (Lanes)(((Mask)a & splat_integer(INT64_MAX)) | ((Mask)b & splat_integer(INT64_MIN)));
}
static inline Lanes lanes_sign(Lanes a) {
    return select_lanes(a < (Lanes){0}, splat(-1.0), select_lanes(a > (Lanes){0}, splat(1.0), a));
}

/* Lane by lane, by the scalar function. */
#define BY_LANE(name) \
    static inline Lanes lanes_##name(Lanes a) { \
        Lanes result; \
        for (int lane = 0; lane < LANES; lane++) result[lane] = name(a[lane]); \
        return result; \
    }
#define BY_LANE_OF_TWO(name) \
    static inline Lanes lanes_##name(Lanes a, Lanes b) { \
        Lanes result; \
        for (int lane = 0; lane < LANES; lane++) result[lane] = name(a[lane], b[lane]); \
        return result; \
    }

/* The vector library of mathematics, libmvec of glibc 2.35: within four units in the last place. */
#if VECTOR_MATHEMATICS && LANES == 8 && defined(__AVX512F__)
#define VECTOR_NAME(arguments, name) _ZGVeN8##arguments##_##name
#elif VECTOR_MATHEMATICS && LANES == 4 && defined(__AVX2__)
#define VECTOR_NAME(arguments, name) _ZGVdN4##arguments##_##name
#elif VECTOR_MATHEMATICS && LANES == 2 && defined(__SSE2__)
#define VECTOR_NAME(arguments, name) _ZGVbN2##arguments##_##name
#endif
#ifdef VECTOR_NAME
#define OF_ONE(name) \
    Lanes VECTOR_NAME(v, name)(Lanes); \
    static inline Lanes lanes_##name(Lanes a) { return VECTOR_NAME(v, name)(a); }
#define OF_TWO(name) \
    Lanes VECTOR_NAME(vv, name)(Lanes, Lanes); \
    static inline Lanes lanes_##name(Lanes a, Lanes b) { return VECTOR_NAME(vv, name)(a, b); }
#else
#define OF_ONE(name) BY_LANE(name)
#define OF_TWO(name) BY_LANE_OF_TWO(name)
#endif

OF_ONE(exp) OF_ONE(log) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos) OF_ONE(atan) OF_ONE(sinh)
OF_ONE(cosh) OF_ONE(tanh) OF_ONE(asinh) OF_ONE(acosh) OF_ONE(atanh) OF_ONE(log1p) OF_ONE(expm1)
OF_TWO(pow) OF_TWO(atan2) OF_TWO(hypot)
BY_LANE(floor)
BY_LANE(ceil)

static inline Lanes lanes_sqrt(Lanes a) {
#if LANES == 8 && defined(__AVX512F__)
    return (Lanes)_mm512_sqrt_pd((__m512d)a);
#elif LANES == 4 && defined(__AVX2__)
    return (Lanes)_mm256_sqrt_pd((__m256d)a);
#else
    Lanes result;
    for (int lane = 0; lane < LANES; lane++) result[lane] = sqrt(a[lane]);
    return result;
#endif
}

/* The arguments of the traced functions, as `Parts` has them of one machine. */
typedef struct {
#define FIELD(name, size) Lanes *name;
    ARGUMENTS(FIELD)
#undef FIELD
#define FIELD(name, size) Lanes *begun_##name;
    STATE_ARRAYS(FIELD)
#undef FIELD
} LaneParts;

#endif
