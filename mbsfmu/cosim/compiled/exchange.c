/* Communication steps: those of coupled_step.py as C, with the functions of FMUs, for the master and for FMUs of FMUs. */

#ifndef _WIN32
#define _POSIX_C_SOURCE 199309L
#endif

#include <float.h>
#include <math.h>
#include <string.h>

#include "ports.h"

#ifdef INSIDE_FMU /* coupled_system.c includes this file, has the constants, and goes from step to step itself */
#define EXPORTED static
#elif defined(_WIN32)
#include <windows.h>
#define EXPORTED __declspec(dllexport)
#else
#include <time.h>
#define EXPORTED __attribute__((visibility("default")))
#endif

#include "member_step.h"
#include "interface_inverse.h"
#include "joint_step.h"
#include "coupled_step.h"

/* Set inputs of an FMU that asks for them inside its step: the intermediate update of FMI 3.0. */
EXPORTED void mbsfmu_set_within(void *environment, double time, bool set_requested, bool get_allowed, bool finished,
                                bool can_return, bool *early, double *early_time)
{
    struct Ramp *ramp = environment;
    (void)get_allowed, (void)finished, (void)can_return, (void)early_time;
    *early = false;
    if (!set_requested || !ramp->component)
        return;
    double elapsed = time - ramp->clock->time, *buffer = ramp->group.buffer;
    for (size_t k = 0; k < ramp->group.count; k++) {
        ptrdiff_t place = ramp->group.places[k];
        if (place >= 0)
            buffer[k] = ramp->values[place] + elapsed * ramp->slopes[place];
    }
    int status = access(ramp->component, &ramp->group, &ramp->group.set);
    if (status > WARNING)
        ramp->report->trouble = status;
}

#ifndef INSIDE_FMU

#include "joint_differences.h"

/* Find the derivatives of joints by their multipliers, where no unit needs a look. */
EXPORTED int mbsfmu_differences(struct Exchange *exchange)
{
    return find_differences(exchange);
}

/* Let outputs go on over the step as they came. */
EXPORTED void mbsfmu_extrapolate(struct Exchange *exchange)
{
    weigh(exchange);
    extrapolate(exchange);
}

/* Let outputs run to values at the end of the step. */
EXPORTED void mbsfmu_interpolate(struct Exchange *exchange, double *values)
{
    weigh(exchange);
    interpolate(exchange, values, 0, exchange->outputs);
}

/* Append outputs that another run of the members has reached as the end of a step. */
EXPORTED int mbsfmu_append(struct Exchange *exchange)
{
    return append(exchange);
}

/* Time in s from some moment on. */
static double now(void)
{
#ifdef _WIN32
    return 1e-3 * (double)GetTickCount64();
#else
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return (double)moment.tv_sec + 1e-9 * (double)moment.tv_nsec;
#endif
}

/* Sizes of all structures, for who fills them. */
EXPORTED size_t mbsfmu_exchange_size(void)
{
    return STRUCTURE_SIZES;
}

/* The environment of this thread, and another one for it. */
EXPORTED unsigned mbsfmu_environment(void)
{
    return environment();
}

EXPORTED void mbsfmu_set_environment(unsigned wanted)
{
    set_environment(wanted);
}

/* Make steps until so many are made, or patience is at its end, or something needs a look. */
EXPORTED int mbsfmu_exchange(struct Exchange *exchange, int count)
{
    double begin = now();
    exchange->environment = environment();
    if (exchange->closing && !exchange->under_way)
        exchange->closing->knows_motions = 0; /* units may have been set since */
    while (exchange->made < count) {
        int outcome = make_step(exchange);
        if (outcome != MADE)
            return outcome;
        exchange->made++;
        if (now() - begin > exchange->patience)
            break;
    }
    return MADE;
}

#endif
