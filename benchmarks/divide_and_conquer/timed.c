/* The generated right-hand side, many times in one call; another point each time, so that none can be left out. */
#include "steps.c"

static Instance instance;

EXPORT void timed(const double *parameters, const double *z, const double *w, int repetitions, double *rates) {
    Parts *parts = &instance.parts;
    connect_memory(&instance);
    COPY(parts->parameters, parameters, PARAMETERS);
    COPY(parts->references, instance.unturned, REFERENCES);
    COPY(parts->coordinates, z, COORDINATES);
    COPY(HAMILTONIAN ? parts->momenta : parts->velocities, w, COORDINATES);
    for (int k = 0; k < repetitions; k++) {
        parts->coordinates[0] = z[0] + 1e-12 * k;
        first_order_rates(parts, rates);
    }
}
