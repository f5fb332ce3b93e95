/* Steps that are chosen by their error, of mbsfmu/stepping/adaptive.py and rosenbrock.py, in C for y' = b t - a y - c y³, one
 * machine or LANES of them, called from Python. Jacobians are diagonals, so that Python solves for the same. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ROOM(size) ((size) > 0 ? (size) : 1)
#define SIZE 3
#define WATCHED 2
#define MOST_FACTOR 8.0
#define FOLLOWS_SLIGHT 1
#define ABSOLUTE_TOLERANCE 1e-7
#define RELATIVE_TOLERANCE 1e-6
#include "constants.h"
#include "method.h"

static const double explicit_scales[] = {1.0, 0.5, 2.0};

/* What a machine is: numbers that Python gives in this order. */
typedef struct {
    double a[SIZE], c[SIZE], b[SIZE], start[SIZE], whole, suggested, fails_at, not_finite_at, refuses_at;
} Data;

/* What it finds. */
typedef struct {
    double made, elapsed, suggested, tries, refused, looked, evaluations, refusals, y[SIZE], inside[SIZE];
} Found;

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static int is_finite(double value) { return value - value == 0.0; }
static double rate_of(const Data *data, double time, double y, int i) {
    return data->b[i] * time - data->a[i] * y - data->c[i] * (y * y * y);
}
static double slope_of(const Data *data, double y, int i) { return -data->a[i] - 3.0 * data->c[i] * (y * y); }

enum { MOST_STEPS_MADE = 8, MOST_ROUNDS = 60 };

#ifndef LANES

typedef struct {
    struct { double tolerance_factor; } state;
    const Data *data;
    double y[SIZE], factors[SIZE];
    int evaluations, refusals, taken, solved;
    char reason[512], refusal[512];
} Instance;

#include "adaptive.h"

static int fail(Instance *instance, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(instance->reason, sizeof instance->reason, format, arguments);
    va_end(arguments);
    return 0;
}

static int fail_because(Instance *instance, const char *format, const char *name, double time) {
    char reason[128];
    snprintf(reason, sizeof reason, "%s%.100s", *instance->reason ? ": " : "", instance->reason);
    snprintf(instance->reason, sizeof instance->reason, format, name, time);
    return snprintf(instance->reason + strlen(instance->reason), 128, "%s", reason) < 0;
}

static int is_stopped(const Instance *instance) { return !instance; }
static void begin_try(Instance *instance) { *instance->reason = '\0'; }

static void count_refusal(Instance *instance) {
    instance->refusals++;
    if (*instance->reason) memcpy(instance->refusal, instance->reason, sizeof instance->refusal);
}

static int find_rates(Instance *instance, double time, const double *values, double *rates) {
    instance->evaluations++;
    for (int i = 0; i < SIZE; i++) rates[i] = rate_of(instance->data, time, values[i], i);
    if (instance->evaluations == instance->data->fails_at) return fail(instance, "a loop is open");
    return 1;
}

static int take_end(Instance *instance, const Way *way, const Attempt *attempt) {
    (void)way;
    if (++instance->taken == instance->data->refuses_at) return fail(instance, "another branch");
    memcpy(instance->y, attempt->end, sizeof instance->y);
    return 1;
}

static int factorize_step(Instance *instance, const Attempt *attempt) {
    for (int i = 0; i < SIZE; i++) {
        instance->factors[i] = 1.0 / (1.0 / (attempt->step * DIAGONAL) - slope_of(instance->data, attempt->start[i], i));
    }
    return 1;
}

static int solve_stage(Instance *instance, Attempt *attempt, int stage) {
    for (int i = 0; i < SIZE; i++) attempt->increments[SIZE * stage + i] *= instance->factors[i];
    if (++instance->solved == instance->data->not_finite_at) attempt->increments[SIZE * stage] = NAN;
    return 1;
}

static void add_columns(int columns, int rows, const double *matrix, int apart, const double *weights, double *sums) {
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < columns; k++) sums[i] += weights[k] * matrix[i + apart * k];
    }
}

#include "rosenbrock.c"
#include "adaptive.c"

void solve(const Data *data, Found *found, char *reason) {
    Instance instance = {.data = data, .state = {1.0}};
    Way way = {.whole = data->whole, .target = data->whole, .most = MOST_FACTOR, .suggested = data->suggested};
    Attempt attempt = {0};
    memcpy(instance.y, data->start, sizeof instance.y);
    int made = 1;
    for (int step = 0; made && step < MOST_STEPS_MADE && way.elapsed < way.whole; step++) {
        attempt.time = way.origin + way.elapsed;
        for (int i = 0; i < SIZE; i++) {
            attempt.start[i] = instance.y[i];
            attempt.rates[i] = rate_of(data, attempt.time, instance.y[i], i);
            attempt.drift[i] = data->b[i];
        }
        made = make_step(&instance, &way, &attempt);
    }
    *found = (Found){
        made, way.elapsed, way.suggested, way.tries, way.refused, way.looked, instance.evaluations, instance.refusals, {0}, {0}
    };
    memcpy(found->y, instance.y, sizeof found->y);
    find_between(&instance, &attempt, 0.3, found->inside);
    memcpy(reason, made ? "" : instance.reason, made ? 1 : sizeof instance.reason);
}

#else

#include "lanes.h"

typedef struct {
    struct { Lanes tolerance_factor; } state;
    const Data *data;
    Lanes y[SIZE], factors[SIZE];
    int evaluations[LANES], refusals[LANES], taken[LANES], solved[LANES];
} Group;

#include "lane_adaptive.h"

static void count_refusal(Group *group, Mask on) {
    for (int lane = 0; lane < LANES; lane++) group->refusals[lane] += on[lane] != 0;
}

static Mask find_rates(Group *group, Lanes times, const Lanes *values, Lanes *rates, Mask on) {
    for (int lane = 0; lane < LANES; lane++) {
        const Data *data = &group->data[lane];
        for (int i = 0; i < SIZE; i++) rates[i][lane] = rate_of(data, times[lane], values[i][lane], i);
        if (!on[lane]) continue;
        group->evaluations[lane]++;
        if (group->evaluations[lane] == data->fails_at) on[lane] = 0;
    }
    return on;
}

static Mask take_end(Group *group, const Way *way, const Attempt *attempt, Mask on) {
    (void)way;
    for (int lane = 0; lane < LANES; lane++) {
        if (!on[lane]) continue;
        if (++group->taken[lane] == group->data[lane].refuses_at) on[lane] = 0;
    }
    for (int i = 0; i < SIZE; i++) group->y[i] = select_lanes(on, attempt->end[i], group->y[i]);
    return on;
}

static Mask factorize_step(Group *group, const Attempt *attempt, Mask on) {
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < SIZE; i++) {
            const double slope = slope_of(&group->data[lane], attempt->start[i][lane], i);
            group->factors[i][lane] = 1.0 / (1.0 / (attempt->step[lane] * DIAGONAL) - slope);
        }
    }
    return on;
}

static Mask solve_stage(Group *group, Attempt *attempt, int stage, Mask on) {
    for (int i = 0; i < SIZE; i++) attempt->increments[SIZE * stage + i] *= group->factors[i];
    for (int lane = 0; lane < LANES; lane++) {
        group->solved[lane] += on[lane] != 0;
        if (on[lane] && group->solved[lane] == group->data[lane].not_finite_at) attempt->increments[SIZE * stage][lane] = NAN;
    }
    return on;
}

static void add_lane_columns(int columns, int rows, const Lanes *matrix, int apart, const Lanes *weights, Lanes *sums) {
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < columns; k++) sums[i] += weights[k] * matrix[i + apart * k];
    }
}

#include "lane_rosenbrock.c"
#include "lane_adaptive.c"

void solve(const Data *data, Found *found, char *reason) {
    Group group = {.data = data, .state = {splat(1.0)}};
    Way way = {.most = splat(MOST_FACTOR)};
    Attempt attempt = {.step = splat(1.0)};
    int made[LANES] = {0};
    Mask failed = NOWHERE;
    for (int lane = 0; lane < LANES; lane++) {
        way.whole[lane] = way.target[lane] = data[lane].whole;
        way.suggested[lane] = data[lane].suggested;
        for (int i = 0; i < SIZE; i++) group.y[i][lane] = data[lane].start[i];
    }
    for (int round = 0; round < MOST_ROUNDS; round++) {
        Mask on = ~failed & (way.elapsed < way.whole);
        for (int lane = 0; lane < LANES; lane++) on[lane] = made[lane] < MOST_STEPS_MADE ? on[lane] : 0;
        if (!any(on)) break;
        attempt.time = select_lanes(on, way.origin + way.elapsed, attempt.time);
        for (int lane = 0; lane < LANES; lane++) {
            for (int i = 0; on[lane] && i < SIZE; i++) {
                attempt.start[i][lane] = group.y[i][lane];
                attempt.rates[i][lane] = rate_of(&data[lane], attempt.time[lane], group.y[i][lane], i);
                attempt.drift[i][lane] = data[lane].b[i];
            }
        }
        const Mask coming = is_coming(&group, &way, on);
        failed |= on & ~coming;
        on &= coming;
        const Mask unknown = on & ~is_long(&way);
        if (any(unknown)) choose_first_step(&group, &way, &attempt, unknown);
        const Mask tried = try_step(&group, &way, &attempt, on);
        failed |= on & ~tried & ~is_long(&way);
        for (int lane = 0; lane < LANES; lane++) made[lane] += (on & tried)[lane] != 0;
    }
    Lanes inside[SIZE];
    find_between(&group, &attempt, splat(0.3), inside, EVERYWHERE);
    for (int lane = 0; lane < LANES; lane++) {
        found[lane] = (Found){
            !failed[lane], way.elapsed[lane], way.suggested[lane], way.tries[lane], way.refused[lane], way.looked[lane],
            group.evaluations[lane], group.refusals[lane], {0}, {0}
        };
        for (int i = 0; i < SIZE; i++) found[lane].y[i] = group.y[i][lane], found[lane].inside[i] = inside[i][lane];
    }
    reason[0] = '\0';
}

#endif
