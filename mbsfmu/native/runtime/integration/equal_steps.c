/* Steps of equal size, halved where they cannot be made. */

/* Make a step; returns 0 with a reason, the state being as it was, where a shorter step may do, and -1 with a reason where
 * none does. */
typedef int (*Attempt)(Instance *instance, double time, double step);

/* One step; where it fails, two of half its size, up to eight times unless its work is bounded. `of` names the method for
 * messages. */
static int make_step(Instance *instance, double time, double step, int halvings, Attempt attempt, const char *of) {
    const int made = attempt(instance, time, step);
    if (made) return made > 0;
    if (halvings == HALVINGS || MOST_INCREMENTS > 0) {
        return fail_because(instance, "the step%s at t = %.9g s fails even with %.3g s", of, time, step);
    }
    instance->state.retries += 1.0;
    return make_step(instance, time, step / 2, halvings + 1, attempt, of)
        && make_step(instance, time + step / 2, step / 2, halvings + 1, attempt, of);
}

/* Advance over an interval without jumps of inputs; longer ones than the internal step are divided evenly. */
static int advance_equally(Instance *instance, double begin_time, double end, Attempt attempt, const char *of) {
    const double count = count_steps(begin_time, end, instance->state.step_size);
    const double step = (end - begin_time) / count;
    for (double index = 0.0; index < count; index += 1.0) {
        const double time = begin_time + index * step;
        if (is_stopped(instance)) return 0;
        if (!make_step(instance, time, step, 0, attempt, of) || !loops_closed(instance, time + step)) return 0;
    }
    return 1;
}
