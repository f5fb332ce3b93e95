/* What every unit asks of an experiment and of a step of its host, before anything is done. Functions return 0 with a reason
 * where they refuse. */
#ifndef MBSFMU_EXPERIMENT_H
#define MBSFMU_EXPERIMENT_H

#include <stdio.h>

#include "times.h"

#define MOST_REACHED (LARGEST * LARGEST) /* by numbers of a state, and by derivatives of what is set */

typedef struct {
    char text[512];
} Reason;

#define OBJECT(...) (snprintf(reason->text, sizeof reason->text, __VA_ARGS__), 0)

/* Check start and stop time in s, and the tolerance. Hosts that only initialize have a stop time at the start, others an
 * infinite one [FMPy]. */
static int check_experiment(Reason *reason, double start, const double *stop, const double *tolerance) {
    if (!isfinite(start)) return OBJECT("the start time is %g s; it must be a finite number", start);
    if (!(fabs(start) <= MOST_REACHED)) {
        return OBJECT("the start time is %g s; its magnitude must be at most %g", start, MOST_REACHED);
    }
    if (stop && !(*stop >= start)) {
        return OBJECT("the stop time is %g s; it must not be before the start time, %g s", *stop, start);
    }
    if (tolerance && !(*tolerance > 0.0 && isfinite(*tolerance))) {
        return OBJECT("the tolerance is %g; it must be positive and finite", *tolerance);
    }
    if (tolerance && *tolerance > LARGEST) {
        return OBJECT("the tolerance is %g; it must be at most %g", *tolerance, LARGEST);
    }
    return 1;
}

/* Check a step from a time of a length in s: it must begin where the unit is, must not be lost in the resolution of time,
 * nor take too much work, nor go beyond the stop time. `internal` is the longest step that it is made of; `stop` is NULL
 * where there is no end. */
static int check_step(Reason *reason, double now, double time, double length, double internal, const double *stop) {
    const double least = larger(RESOLVED_STEP * resolution(time, time + length), LEAST_STEP);
    if (!isfinite(time)) return OBJECT("the step begins at t = %g s; it must be a finite number", time);
    if (!(length > 0.0) || !isfinite(length)) return OBJECT("the step is %g s; it must be positive and finite", length);
    if (length < least) {
        return OBJECT(
            "the step of %g s is lost in the resolution of time at t = %g s; it must be at least %.3g s there", length, time,
            least
        );
    }
    if (length > MOST_STEPS * internal) {
        return OBJECT(
            "the step of %g s is %.3g times the internal step of %g s; it may be %g times as long at most", length,
            length / internal, internal, MOST_STEPS
        );
    }
    if (!(fabs(time - now) <= time_tolerance(length, time, now))) {
        return OBJECT("the step begins at t = %.12g s, but the FMU is at %.12g s", time, now);
    }
    if (stop && time + length > *stop + OVERSHOOT * length) {
        return OBJECT("the step ends at %.12g s, after the stop time of %.12g s", time + length, *stop);
    }
    return 1;
}

#undef OBJECT

#endif
