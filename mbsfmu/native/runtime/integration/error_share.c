/* The largest error of a run as a share of the range of its variable, as mbsfmu/integration/error_measure.py. */

#if ERROR > 0

/* Writes which variable it is of; NOT_KNOWN where it is not known. */
static double error_share(const State *state, int *worst) {
    const double *const record = state->error_record, *const lowest = record + AT_LOWEST, *const highest = record + AT_HIGHEST;
    double share = 0.0;
    *worst = 0;
#if MODEL_EXCHANGE
    if (state->exchanges) return NOT_KNOWN; /* steps are the host's */
#endif
    if (record[ERROR_RECORD - 1] != 0.0) return NOT_KNOWN;
    if (record[AT_COUNT] == 0.0) return 0.0;
    for (int group = 0; group < ERROR_GROUPS; group++) {
        double widest = 0.0, greatest = 0.0;
        for (int i = 0; i < RECORDED; i++) {
            if (error_groups[i] != group) continue;
            widest = larger(widest, highest[i] - lowest[i]);
            greatest = larger(greatest, larger(fabs(lowest[i]), fabs(highest[i])));
        }
        const double least = larger(larger(SMALL_RANGE * widest, SMALL_CHANGE * greatest), least_ranges[group]);
        for (int i = 0; i < RECORDED; i++) {
            if (error_groups[i] != group) continue;
            const double own = record[i] / larger(highest[i] - lowest[i], least);
            if (own > share || (own == share && i < *worst)) {
                share = own;
                *worst = i;
            }
        }
    }
    return share;
}

/* Say so where the run that ends here is inaccurate. */
static void report_error_estimate(Instance *instance) {
    int worst;
    const double share = error_share(&instance->state, &worst);
    const double loss = instance->state.error_record[ERROR_RECORD - 1];
    if (loss != 0.0) {
        report(
            instance, DONE_WITH_WARNING, "%s: the error is not known: %s: " MORE_ACCURATE, SYSTEM_NAME,
            loss == LOST_REFERENCES ? REFERENCES_CHANGED : TOO_FAR
        );
    } else if (share > MEANINGLESS && share < NOT_KNOWN) {
        report(
            instance, DONE_WITH_WARNING, "%s: the error of %s is more than %.0f %% of its range: " MORE_ACCURATE, SYSTEM_NAME,
            error_names[worst], 100.0 * MEANINGLESS
        );
    } else if (share > LARGE_ERROR && share < NOT_KNOWN) {
        report(
            instance, DONE_WITH_WARNING,
            "%s: the error of %s is estimated at %.2g %% of its range, the largest of all variables: " MORE_ACCURATE,
            SYSTEM_NAME, error_names[worst], 100.0 * share
        );
    }
}

#else

static double error_share(const State *state, int *worst) {
    (void)state;
    *worst = 0;
    return NOT_KNOWN;
}

static void report_error_estimate(Instance *instance) { (void)instance; }

#endif
