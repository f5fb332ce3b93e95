/* What the processor and the libraries of this machine have for several numbers at once. */
#include "lane_width.h"
#include "visibility.h"

/* How many doubles fit into the widest registers whose instructions are there. */
EXPORT int mbsfmu_lanes(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return 8;
    if (__builtin_cpu_supports("avx2")) return 4;
#endif
    return 2;
}

#if VECTOR_MATHEMATICS
/* A function of libmvec that came last: a library with it is loaded only where it is there. */
void _ZGVeN8vv_hypot(void);
EXPORT void (*const mbsfmu_needed)(void);
void (*const mbsfmu_needed)(void) = _ZGVeN8vv_hypot;
#endif
