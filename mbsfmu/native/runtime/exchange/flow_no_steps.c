/* Where an FMU is for model exchange alone: it makes no steps, and its equations are there once. */

static int advance(Instance *instance, double begin_time, double end, double horizon) {
    (void)begin_time;
    (void)end;
    (void)horizon;
    return fail(instance, "the unit makes no steps: it is for model exchange");
}
