/* The generated right-hand side, many times in one call; another point each time, so that none can be left out. */
#include "steps.c"

static Instance instance;

EXPORT void timed(const double *parameters, const double *z, const double *w, int repetitions, double *rates) {
    Parts *parts = &instance.parts;
    connect_memory(&instance);
    if (instance.state.threads < 1.0) instance.state.threads = THREADS;
    COPY(parts->parameters, parameters, PARAMETERS);
    COPY(parts->references, instance.unturned, REFERENCES);
    COPY(parts->coordinates, z, COORDINATES);
    COPY(HAMILTONIAN ? parts->momenta : parts->velocities, w, COORDINATES);
    for (int k = 0; k < repetitions; k++) {
        parts->coordinates[0] = z[0] + 1e-12 * k;
        first_order_rates(parts, rates);
    }
}

EXPORT void threads(int count) { instance.state.threads = count; }

#if THREADS > 1
static void nothing(void *shared, int thread) { (void)shared, (void)thread; }

/* A part of the right-hand side, a phase or a section of one, many times: what it takes has been found, and stays. */
EXPORT void timed_part(int number, int repetitions) {
    const int *begin = first_order_rates_table, *lengths = first_order_rates_phases;
    for (int left = 0;; lengths++) { /* until the one that is looked for */
        if (!left) left = *lengths > 1 ? *lengths : 1, lengths++;
        if (!number--) break;
        begin += *lengths;
        left--;
    }
    for (int k = 0; k < repetitions; k++) {
        for (const int *at = begin; at != begin + *lengths;) {
            at = run_stretch(instance.parts.work, at, 0, at[1], first_order_rates_call);
        }
    }
}

/* What it costs to share nothing. */
EXPORT void shares(int threads, int count) {
    Pool *pool = pool_new(threads);
    pool_begin(pool);
    for (int k = 0; k < count; k++) pool_share(pool, nothing, NULL);
    pool_end(pool);
    pool_free(pool);
}
#endif
