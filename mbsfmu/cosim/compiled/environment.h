/* The floating-point environment of a thread: rounding, and on x86 what becomes of denormal numbers and exceptions. */

#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <fenv.h>

#if defined(__GNUC__) && defined(__SSE2__)
#define HAS_MXCSR 1
enum { CONTROL = 0xFFC0, ROUNDING = 0x6000, ROUNDING_SHIFT = 3 }; /* bits of MXCSR; the x87 word has rounding lower */
#else
#define HAS_MXCSR 0
#endif

static unsigned environment(void)
{
#if HAS_MXCSR
    return __builtin_ia32_stmxcsr() & CONTROL;
#else
    return (unsigned)fegetround();
#endif
}

static void set_environment(unsigned wanted)
{
#if HAS_MXCSR
    fesetround((int)((wanted & ROUNDING) >> ROUNDING_SHIFT));
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~(unsigned)CONTROL) | wanted);
#else
    fesetround((int)wanted);
#endif
}

#endif
