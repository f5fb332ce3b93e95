/* Change points: where the loop equations lose rank between and at the points at which a run is looked at, the sign of
 * every minor of Phi_z changes; that of one is followed. Where it does, the motion between two points is taken from
 * positions and velocities at both, and the rank where the minor vanishes tells change points from others. */

#if INDEPENDENT > 0

/* Where in the argument `dense` the matrices stand that are needed at once. */
#define PHI_Z (CONSTRAINTS * COORDINATES)
#define CHOSEN_FROM (2 * PHI_Z)
#define CHOSEN_TURNED (3 * PHI_Z)

/* Phi_z at some coordinates. */
static void jacobian_at(const Parts *parts, const double *coordinates, double *jacobian) {
    double violation[CONSTRAINTS];
    COPY(parts->coordinates, coordinates, COORDINATES);
    step_functions.closure(parts, violation, jacobian);
}

/* What an element of Phi_z is divided by to be the same in all FMUs and sizes. */
static double scale_of(int row, int column) { return watched_equations[row] / watched_lengths[column]; }

/* The least pivot of the watched minor at some coordinates, and the sign of its determinant. */
static double minor_at(const Watch *watch, const Parts *parts, const double *coordinates, int *sign) {
    double *jacobian = parts->dense, *minor = parts->dense + PHI_Z, least = HUGE_VAL;
    int pivots[INDEPENDENT], odd = 0;
    jacobian_at(parts, coordinates, jacobian);
    for (int j = 0; j < INDEPENDENT; j++) {
        for (int i = 0; i < INDEPENDENT; i++) {
            const int row = watch->rows[i], column = watch->columns[j];
            minor[i + INDEPENDENT * j] = jacobian[row + CONSTRAINTS * column] / scale_of(row, column);
        }
    }
    *sign = 1;
    if (!factorize(INDEPENDENT, minor, pivots)) return 0.0;
    for (int k = 0; k < INDEPENDENT; k++) {
        const double pivot = minor[(INDEPENDENT + 1) * k];
        least = smaller(least, fabs(pivot));
        odd += (pivots[k] != k) + (pivot < 0.0);
    }
    *sign = odd % 2 ? -1 : 1;
    return least;
}

/* Take the first indices of an order as a set: neighbours in the mechanism are neighbours in the minor then, whose factors
 * have a band. */
static void take_ascending(int count, const int *order, int *chosen) {
    int taken[MOST(COORDINATES, CONSTRAINTS)] = {0};
    for (int k = 0; k < INDEPENDENT; k++) taken[order[k]] = 1;
    for (int i = 0, k = 0; i < count; i++) {
        if (taken[i]) chosen[k++] = i;
    }
}

/* Choose rows and columns by pivoting; returns the share by which the last equation stands out. */
static double choose_minor(Watch *watch, const Parts *parts, const double *coordinates) {
    double *jacobian = parts->dense, *factors = parts->dense + CHOSEN_FROM, *turned = parts->dense + CHOSEN_TURNED;
    double scales[MOST(COORDINATES, CONSTRAINTS)];
    int order[QR_ORDERS(CONSTRAINTS, COORDINATES) + QR_ORDERS(COORDINATES, CONSTRAINTS)];
    jacobian_at(parts, coordinates, jacobian);
    for (int j = 0; j < COORDINATES; j++) {
        for (int i = 0; i < CONSTRAINTS; i++) jacobian[i + CONSTRAINTS * j] /= scale_of(i, j);
    }
    COPY(factors, jacobian, CONSTRAINTS * COORDINATES);
    const int rank = orthogonalize(CONSTRAINTS, COORDINATES, factors, scales, order, 0.0);
    const double last = rank < INDEPENDENT ? 0.0 : fabs(factors[(CONSTRAINTS + 1) * (INDEPENDENT - 1)] / factors[0]);
    for (int k = 0; k < INDEPENDENT; k++) {
        for (int i = 0; i < CONSTRAINTS; i++) turned[k + INDEPENDENT * i] = jacobian[i + CONSTRAINTS * order[k]];
    }
    take_ascending(COORDINATES, order, watch->columns);
    orthogonalize(INDEPENDENT, CONSTRAINTS, turned, scales, order, 0.0);
    watch->outermost = order[INDEPENDENT - 1];
    take_ascending(CONSTRAINTS, order, watch->rows);
    watch->size = minor_at(watch, parts, coordinates, &watch->sign);
    return last;
}

/* Coordinates at a share of the interval since the last point, cubic by positions and velocities at its ends. */
static void between(const Watch *watch, const State *state, double share, double *coordinates) {
    const double rest = 1.0 - share, length = state->time - watch->time;
    for (int j = 0; j < COORDINATES; j++) {
        const double from = watch->coordinates[j], to = state->coordinates[j];
        const double moved = length * (rest * watch->velocities[j] - share * state->velocities[j]);
        coordinates[j] = from * rest + to * share + share * rest * ((rest - share) * (from - to) + moved);
    }
}

/* Tell where rank is lost between the last point and the state; returns whether it is. */
static int lost_between(Watch *watch, const Parts *parts, const State *state, double *time) {
    double low = 0.0, high = 1.0, coordinates[COORDINATES];
    for (int k = 0; k < CHANGE_HALVINGS; k++) {
        const double middle = 0.5 * (low + high);
        int sign;
        between(watch, state, middle, coordinates);
        minor_at(watch, parts, coordinates, &sign);
        if (sign == watch->sign) {
            low = middle;
        } else {
            high = middle;
        }
    }
    between(watch, state, low, coordinates);
    *time = watch->time + low * (state->time - watch->time);
    return choose_minor(watch, parts, coordinates) < NEAR_CHANGE;
}

/* Whether coordinates have moved so little since the last point that no pivot can have vanished. */
static int is_near(const Watch *watch, const State *state) {
    if (!watch->follows || memcmp(watch->references, state->references, sizeof watch->references) != 0) return 0;
    for (int j = 0; j < COORDINATES; j++) {
        const double moved = fabs(state->coordinates[j] - watch->coordinates[j]);
        if (!(moved <= CHANGE_STRIDE * watch->least * watched_lengths[j])) return 0;
    }
    return 1;
}

/* Whether the minor of the last point still serves at the state; tells too whether rank was lost between them. */
static int still_serves(Watch *watch, const Parts *parts, const State *state, int *lost, double *time, int *row) {
    int sign;
    if (!watch->follows || memcmp(watch->references, state->references, sizeof watch->references) != 0) return 0;
    const double size = minor_at(watch, parts, state->coordinates, &sign);
    watch->least = size;
    if (sign == watch->sign) return size >= MINOR_KEPT * watch->size;
    *lost = lost_between(watch, parts, state, time);
    *row = watch->outermost;
    return 0;
}

/* Look at the state as the next point of the run, and tell the first change point of a run. */
static void follow_rank(Instance *instance) {
    const State *state = &instance->state;
    const Parts *parts = &instance->parts;
    Watch *watch = &instance->watch;
    double time = state->time;
    int lost = 0, row = 0;
    watch->seen_time = state->time;
    COPY(watch->seen, state->coordinates, COORDINATES);
    if (watch->warned || is_near(watch, state)) return;
    COPY(parts->references, state->references, REFERENCES);
    if (!still_serves(watch, parts, state, &lost, &time, &row)) {
        const double last = choose_minor(watch, parts, state->coordinates);
        watch->least = watch->size;
        if (!lost && last < NEAR_CHANGE) {
            lost = 1;
            time = state->time;
            row = watch->outermost;
        }
    }
    watch->follows = 1;
    watch->time = state->time;
    COPY(watch->coordinates, state->coordinates, COORDINATES);
    COPY(watch->velocities, state->velocities, COORDINATES);
    COPY(watch->references, state->references, REFERENCES);
    if (!lost) return;
    watch->warned = 1;
    report(
        instance, DONE_WITH_WARNING,
        "%s: at t = %.6g s the loop at joint %s comes to a change point, where the loop equations lose rank: they "
        "determine neither the reactions near it nor which way the loop goes on", SYSTEM_NAME, time, watched_joints[row]
    );
}

/* Let the reason of a step that failed at a change point say so. */
static void name_change_point(Instance *instance) {
    Watch watch;
    char *const other = strstr(instance->reason, NOT_SMOOTH);
    COPY(instance->parts.references, instance->state.references, REFERENCES);
    if (!(choose_minor(&watch, &instance->parts, instance->state.coordinates) < NEAR_CHANGE)) return;
    if (other) *other = '\0';
    const size_t length = strlen(instance->reason);
    snprintf(
        instance->reason + length, sizeof instance->reason - length, CHANGE_CAUSE, watched_joints[watch.outermost],
        PASSES_CHANGE_POINTS
    );
}

#else

static void follow_rank(Instance *instance) { (void)instance; }
static void name_change_point(Instance *instance) { (void)instance; }

#endif
