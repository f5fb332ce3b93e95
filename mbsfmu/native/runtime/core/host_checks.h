/* What every unit asks of an experiment, of a step and of a saved state of its host, before anything is done. Functions
 * that check return 0 with a reason where they refuse. */
#ifndef MBSFMU_HOST_CHECKS_H
#define MBSFMU_HOST_CHECKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* -- the head of every saved state: a host may hand back what is none, or that of another FMU ----------------------- */

#define SAVED_MARK "mbsfmu\0\2" /* first bytes of every saved state; the last one is the version of this layout */

typedef struct {
    char mark[8];
    char identity[64];              /* the unit's identity; zeros behind it */
    uint64_t size, checksum;        /* of the whole in bytes, and of what follows */
} SavedHead;

/* Write the head of a state of this unit, of a size in bytes; without its checksum. */
static void write_head(SavedHead *head, size_t size) {
    memset(head, 0, sizeof *head);
    memcpy(head->mark, SAVED_MARK, sizeof head->mark);
    memcpy(head->identity, IDENTITY, sizeof(IDENTITY));
    head->size = size;
}

/* Why a head is not that of a state of this unit, of a size in bytes; NULL where it is. */
static const char *objection_to_head(const SavedHead *head, size_t size) {
    const char identity[sizeof head->identity] = IDENTITY;
    if (memcmp(head->mark, SAVED_MARK, sizeof head->mark) != 0) return "it is no state of a unit of this kind";
    if (memcmp(head->identity, identity, sizeof identity) != 0) return "it is the state of another FMU";
    return head->size == size ? NULL : "its size is not that of a state of this FMU";
}

#endif
