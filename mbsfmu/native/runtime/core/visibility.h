/* What is seen of compiled code from outside, and under which name. */
#ifndef MBSFMU_VISIBILITY_H
#define MBSFMU_VISIBILITY_H

/* EXPORT: seen by everybody. INTERNAL: what one source file gives to the others and to nobody else. */
#if defined(_WIN32) || defined(__CYGWIN__)
#define EXPORT __declspec(dllexport)
#define INTERNAL
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#define INTERNAL __attribute__((visibility("hidden")))
#else
#define EXPORT
#define INTERNAL
#endif

/* A program that links several FMUs from source has functions with prefixes, by the word of the interface's version. */
#include "prefix.h"
#if defined(FMI2_FUNCTION_PREFIX) && !defined(FMI2_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI2_FUNCTION_PREFIX
#elif defined(FMI3_FUNCTION_PREFIX) && !defined(FMI3_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI3_FUNCTION_PREFIX
#endif
#ifdef PREFIX
#define PASTED(a, b) a##b
#define JOINED(a, b) PASTED(a, b)
#define NAMED(name) JOINED(PREFIX, name)
#else
#define NAMED(name) name
#endif

#endif
