/* Energy that drifts tells steps which do not resolve a motion or circuit; as mbsfmu/simulation/watches.py. It is looked at
 * wherever outputs are read, and of steps after which nothing is read at a few between powers of two. A host may take steps
 * back if it has saved a state: what is found in one is told where it says that it will not, or cannot, at the end of the run,
 * or where a step fails. */

static double highest_of(double *highest, double value) { return *highest = larger(*highest, value); }

static double range_of(double *highest, double value) {
    const double up = highest_of(highest, value);
    return up + highest_of(highest + 1, -value);
}

/* Look at the energies of one mechanism or circuit. */
static void follow_balance(Instance *instance, const Energies *energies, int index) {
    double *highest = instance->state.highest + HIGHEST * index, *first = instance->state.drifts + DRIFTS * index;
    const double *outputs = instance->outputs, *integrals = instance->state.integrals;
    const int moving = energies->kinetic >= 0;
    double exchanged = range_of(highest, moving ? outputs[energies->kinetic] : 0.0);
    const double stored = range_of(highest + 2, outputs[energies->potential]);
    exchanged = larger(exchanged, stored);
    exchanged = larger(exchanged, range_of(highest + 4, integrals[energies->work]));
    exchanged = larger(exchanged, range_of(highest + 6, integrals[energies->dissipated]));
    const double least = LEAST_SHARE * larger(larger(highest[2], highest[3]), energies->scale);
    const double drift = fabs(outputs[energies->drift] - highest[HIGHEST - 1]);
    const double much = larger(LARGE_DRIFT * (moving ? exchanged : stored), LEAST_DRIFT * (moving ? highest[0] : exchanged));
    if (first[0] > 0.0 || !(drift > larger(much, least))) return;
    first[0] = drift;
    first[1] = exchanged;
    first[2] = instance->state.time;
    first[3] = moving ? highest[0] : 0.0;
}

/* Tell the drifts on the way to the state, which will not be taken back. */
static void report_drifts(Instance *instance) {
    for (int k = 0; k < BALANCES; k++) {
        const double *first = instance->state.drifts + DRIFTS * k;
        const int moving = balances[k].kinetic >= 0;
        char share[24] = "no less than", spin[64] = "";
        if (instance->drift_warned[k] || !(first[0] > 0.0)) continue;
        instance->drift_warned[k] = 1;
        if (first[0] < WHOLE * first[1]) snprintf(share, sizeof share, "%.2g %% of", 100.0 * first[0] / first[1]);
        if (WHOLE * first[3] > larger(first[1], first[0])) {
            snprintf(spin, sizeof spin, " and %.2g %% of the kinetic energy", 100.0 * first[0] / first[3]);
        }
        report(
            instance, DONE_WITH_WARNING,
            "%s: from t = %.6g s on the %s is not resolved: %s comes to %.3g J, %s the %.3g J exchanged%s, and "
            "%s may be off by far more than that: " DRIFT_REMEDY, SYSTEM_NAME, first[2],
            moving ? "motion or the power of loads" : "circuit", balances[k].name, first[0], share, first[1], spin,
            moving ? "either" : "pressures"
        );
    }
}

/* Look at the energies at the state as the next point of the run. */
static void follow_energy(Instance *instance) {
    if (BALANCES == 0) return;
    find_outputs(instance);
    for (int k = 0; k < BALANCES; k++) follow_balance(instance, &balances[k], k);
    instance->state.energies_followed = 1;
}

static void begin_energy(Instance *instance) {
    State *state = &instance->state;
    for (int i = 0; i < HIGHEST * BALANCES; i++) state->highest[i] = i % HIGHEST == HIGHEST - 1 ? 0.0 : -DBL_MAX;
    for (int i = 0; i < DRIFTS * BALANCES; i++) state->drifts[i] = 0.0;
    state->communications = 0;
    state->energies_followed = 0;
    memset(instance->drift_warned, 0, sizeof instance->drift_warned);
}

/* Count a communication step, and look at those that are due. */
static void follow_energy_if_due(Instance *instance) {
    const uint64_t count = ++instance->state.communications;
    uint64_t apart = 1;
    while (apart * 2 * DENSE <= count) apart *= 2;
    if (count % apart == 0) follow_energy(instance);
}

/* Let energy that parameters bring in or take out while they change be no drift: called before with -1, after with 1. */
static void shift_drift(Instance *instance, double sign) {
    if (BALANCES == 0) return;
    find_outputs(instance);
    for (int k = 0; k < BALANCES; k++) {
        instance->state.highest[HIGHEST * (k + 1) - 1] += sign * instance->outputs[balances[k].drift];
    }
}
