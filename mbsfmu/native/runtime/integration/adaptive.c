/* What methods that choose their steps have in common: how large an error is, what to begin with, and values inside steps
 * that pass over times at which they are wanted. WATCHED elements of y count for the error, ORDER is the method's. */

/* How far an interval has been at the last one of so many tries of steps, and how many of those that were made since could not
 * be evaluated. */
typedef struct {
    int tries, refused;
    double elapsed;
    char reason[300];
} Progress;

/* Take notice of a try that has failed: its equations could not be evaluated where there is a reason. */
static void note_failure(const Instance *instance, Progress *progress) {
    if (!*instance->reason) return;
    progress->refused++;
    snprintf(progress->reason, sizeof progress->reason, "%.*s", (int)sizeof progress->reason - 1, instance->reason);
}

/* Count a try; returns 0 with a reason where steps will not come to the end of the interval. */
static int goes_on(Instance *instance, Progress *progress, double time, double elapsed, double whole) {
    if (++progress->tries < CRAWLING_STEPS) return 1;
    const double made = elapsed - progress->elapsed;
    const int often = progress->refused >= REFUSED_STEPS;
    progress->tries = progress->refused = 0;
    progress->elapsed = elapsed;
    if (made >= (often ? REFUSED_SHARE : CRAWLING_SHARE) * whole) return 1;
    if (often) {
        return fail(
            instance, "steps fail at t = %.9g s again and again, however short they are: %s", time, progress->reason
        );
    }
    return fail(
        instance, "at t = %.9g s %d steps have come no farther than %.3g s of %.3g s" NOT_SMOOTH, time, CRAWLING_STEPS, made,
        whole
    );
}

/* Root mean square of the first elements of a difference by the tolerances. */
static double size_of_first(
    int count, const State *state, const double *start, const double *end, const double *difference
) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        const double largest = larger(fabs(start[i]), fabs(end[i]));
        const double tolerance = ABSOLUTE_TOLERANCE * explicit_scales[i] + RELATIVE_TOLERANCE * largest;
        const double share = difference[i] / (state->tolerance_factor * tolerance);
        sum += share * share;
    }
    return all_finite(&sum, 1) ? sqrt(sum / larger(count, 1)) : HUGE_VAL;
}

static double size_of(const State *state, const double *start, const double *end, const double *difference) {
    return size_of_first(WATCHED, state, start, end, difference);
}

/* A step to begin with, by the rates and how they change [Hairer1993, sect. II.4]. */
static double first_step(Instance *instance, const double *start, const double *speeds, double time, double whole) {
    const State *state = &instance->state;
    double trial[ROOM(SIZE)], rates[ROOM(SIZE)];
    const double size = size_of(state, start, start, start), speed = size_of(state, start, start, speeds);
    /* Of what is at rest rates are round-off, which must not decide on anything: they are compared with no number. */
    double step = size < STANDING ? smaller(whole, FIRST_STEP) : whole;
    if (size >= STANDING && speed * step > FIRST_CHANGE * size) step = FIRST_CHANGE * size / speed;
    for (int i = 0; i < SIZE; i++) trial[i] = start[i] + step * speeds[i];
    instance->state.evaluations += 1.0;
    if (!rates_of(instance, time + step, trial, rates)) return step;
    for (int i = 0; i < SIZE; i++) rates[i] -= speeds[i];
    const double fastest = larger(speed, size_of(state, start, start, rates) / step);
    const double accurate = fastest > 0.0 ? pow(FIRST_CHANGE / fastest, 1.0 / ORDER) : whole;
    return smaller(whole, smaller(100.0 * step, accurate));
}

/* y at a share of a step, of which `tried` has all that is needed. */
typedef void (*Interpolant)(const void *tried, double share, double *y);

/* Bring the state to each of the times inside a step that is going to be taken at which something is wanted; afterwards it
 * is where it was. Returns 0 with a reason where it cannot be brought there. */
static int look_inside(Instance *instance, double time, double step, double end, Interpolant interpolant, const void *tried) {
    Wanted *wanted = instance->wanted;
    if (!wanted || wanted->count == 0 || !(*wanted->times < end)) return 1;
    State *state = &instance->state;
    State *const before = &instance->waiting[BEFORE_LOOKING];
    int made = 1;
    *before = *state;
    while (made && wanted->count > 0 && *wanted->times < end) {
        const double elapsed = *wanted->times - time;
        double y[ROOM(SIZE)];
        interpolant(tried, elapsed / step, y);
        made = commit(instance, *wanted->times, elapsed, y);
        if (made) {
            wanted->take(instance, *wanted->times);
            wanted->times++;
            wanted->count--;
        }
        *state = *before;
    }
    return made;
}
