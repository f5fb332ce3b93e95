/* Putting a system together: start values onto the constraints, forces that keep it at rest. */

#define MOST_SIDE MOST(MOST_COORDINATES, MOST_CONSTRAINTS)

/* Large matrices stand in the argument `dense`, which has a place for each of those that are needed at once. */
typedef enum { OF_CLOSURE, OF_NEXT, OF_COLUMNS, OF_FACTORS, OF_VARIED, OF_WORK } Dense;

static inline double *dense_matrix(const Parts *parts, Dense place) { return parts->dense + DENSE_MATRIX * place; }

/* `rows` counts what is in `violation` and in the columns of `jacobian`: the constraints, and misalignments behind them where
 * joints are turned back. */
typedef struct {
    double violation[ROOM(MOST_CONSTRAINTS)];
    double *jacobian;
    double drifts[ROOM(MOST_CONSTRAINTS)];
    int rows;
} Closure;

static void close_at(const Assembly *assembly, const Parts *parts, const double *coordinates, Closure *closure) {
    memcpy(parts->coordinates, coordinates, sizeof(double) * (size_t)assembly->coordinates);
    assembly->all_closure(parts, closure->violation, closure->jacobian, closure->drifts);
    closure->rows = assembly->constraints;
}

/* The same with misalignments. */
static void align_at(const Assembly *assembly, const Parts *parts, const double *coordinates, Closure *closure) {
    const int n = assembly->coordinates, m = assembly->constraints, a = assembly->aligned;
    double *own = dense_matrix(parts, OF_FACTORS), *turned = dense_matrix(parts, OF_VARIED), *into = closure->jacobian;
    closure->jacobian = own;
    close_at(assembly, parts, coordinates, closure);
    assembly->misaligned(parts, closure->violation + m, turned);
    closure->jacobian = into;
    closure->rows = m + a;
    for (int j = 0; j < n; j++) {
        memcpy(into + (m + a) * j, own + m * j, sizeof(double) * (size_t)m);
        memcpy(into + (m + a) * j + m, turned + a * j, sizeof(double) * (size_t)a);
    }
}

typedef void (*ClosingAt)(const Assembly *, const Parts *, const double *coordinates, Closure *);

/* Move the marked coordinates by Gauss-Newton steps of least length, shortened until the violation falls. */
static void approach_by(
    ClosingAt closing_at, const Assembly *assembly, const Parts *parts, double *coordinates, const int *moving,
    Closure *closure
) {
    const int n = assembly->coordinates;
    int orders[ROOM(SQUARES_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    double *work = dense_matrix(parts, OF_WORK), *columns = dense_matrix(parts, OF_COLUMNS);
    double step[ROOM(MOST_COORDINATES)], trial[ROOM(MOST_COORDINATES)];
    closing_at(assembly, parts, coordinates, closure);
    const int m = closure->rows;
    if (m == 0) return;
    for (int iteration = 0; iteration < ASSEMBLY_ITERATIONS; iteration++) {
        int count = 0;
        Closure next = {.jacobian = dense_matrix(parts, OF_NEXT)};
        for (int j = 0; j < n; j++) {
            if (!moving[j]) continue;
            memcpy(columns + m * count, closure->jacobian + m * j, sizeof(double) * (size_t)m);
            count++;
        }
        least_squares(m, count, columns, closure->violation, step, RANK_TOLERANCE, work, orders);
        const double longest = largest_magnitude(step, count);
        const double scale = longest > ASSEMBLY_STEP ? ASSEMBLY_STEP / longest : 1.0;
        const double size = magnitude(closure->violation, m);
        double share = 1.0;
        int better = 0;
        for (; share > ASSEMBLY_SHARE; share *= 0.5) {
            for (int j = 0, k = 0; j < n; j++) trial[j] = coordinates[j] - (moving[j] ? share * scale * step[k++] : 0.0);
            closing_at(assembly, parts, trial, &next);
            if (magnitude(next.violation, m) < size) {
                better = 1;
                break;
            }
        }
        if (!better) return; /* at round-off, or at a violation that stays */
        memcpy(coordinates, trial, sizeof(double) * (size_t)n);
        memcpy(closure->violation, next.violation, sizeof next.violation);
        memcpy(closure->jacobian, next.jacobian, sizeof(double) * (size_t)(m * n));
    }
}

static void approach(
    const Assembly *assembly, const Parts *parts, double *coordinates, const int *moving, Closure *closure
) {
    approach_by(close_at, assembly, parts, coordinates, moving, closure);
}

/* The index of a joint that is turned by half a turn where the parts are; -1 without one. */
static int turned_joint(const Assembly *assembly, const Parts *parts) {
    double misalignment[ROOM(MOST_CONSTRAINTS)];
    int worst = 0;
    if (assembly->aligned == 0) return -1;
    assembly->misaligned(parts, misalignment, dense_matrix(parts, OF_VARIED));
    for (int i = 1; i < assembly->aligned; i++) {
        if (misalignment[i] > misalignment[worst]) worst = i;
    }
    return misalignment[worst] < TURNED ? -1 : worst;
}

/* Whether the loops are closed at coordinates, by no joint that is turned by half a turn. */
static int closes(const Assembly *assembly, const Parts *parts, const double *coordinates, const Closure *closure) {
    if (!(largest_magnitude(closure->violation, assembly->constraints) < ASSEMBLED)) return 0;
    memcpy(parts->coordinates, coordinates, sizeof(double) * (size_t)assembly->coordinates);
    return turned_joint(assembly, parts) < 0;
}

/* Move coordinates onto the constraints with no joint turned by half a turn; returns 0 where that is not found. Where a joint
 * is turned by half a turn exactly, misalignments have no slope: the search begins again next to that. */
static int turn_back(const Assembly *assembly, const Parts *parts, double *coordinates, const int *moving) {
    Closure closure = {.jacobian = dense_matrix(parts, OF_CLOSURE)};
    double whole;
    if (assembly->aligned == 0) return 0;
    for (int attempt = 0; attempt < MOST_TURNS; attempt++) {
        approach_by(align_at, assembly, parts, coordinates, moving, &closure);
        if (closes(assembly, parts, coordinates, &closure)) return 1;
        for (int j = 0; j < assembly->coordinates; j++) {
            if (!moving[j]) continue;
            const double share = modf(GOLDEN * (1.0 + j + attempt), &whole);
            coordinates[j] -= NEXT_TO_TURNED * (0.5 + share) * (coordinates[j] < 0.0 ? -1.0 : 1.0);
        }
    }
    return 0;
}

/* How much coordinates or velocities are given: 2 what was set, 1 what the model has, 0 where that is zero by default. */
static void rank_given(int count, const double *values, const double *own, const int *written, int *ranks) {
    for (int j = 0; j < count; j++) ranks[j] = values[j] != own[j] ? 2 : written[j] || own[j] != 0.0;
}

/* Mark the coordinates or velocities that follow from the others: those that are given only where it must be. Returns
 * their number. Of the others those are preferred that have `moved` further, where that is not NULL. */
static int choose_dependent(
    const Assembly *assembly, const Parts *parts, const Closure *closure, const int *ranks, const double *moved,
    int *dependent
) {
    const double shares[] = {1.0, GIVEN, GIVEN * GIVEN};
    const int m = assembly->constraints, n = assembly->coordinates;
    double *factors = dense_matrix(parts, OF_FACTORS), scales[ROOM(MOST_SIDE)];
    int order[ROOM(QR_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    memcpy(factors, closure->jacobian, sizeof(double) * (size_t)(m * n));
    const int rank = orthogonalize(m, n, factors, scales, order, RANK_TOLERANCE);
    for (int j = 0; j < n; j++) {
        const double share = moved && ranks[j] == 0 ? moved[j] : shares[ranks[j]];
        for (int i = 0; i < m; i++) factors[i + m * j] = closure->jacobian[i + m * j] * share;
    }
    take_pivots(m, n, factors, rank, 0.0, dependent);
    return rank;
}

/* Close the loops near the given coordinates. What the model has, or was set, stays where the others alone can close them;
 * where they cannot, what was set, which differs from the model's own. Of the others independent coordinates keep their
 * values where that is possible; the rest are marked as moving. Writes a reason and returns 0 where it is impossible. */
static int close_loops(
    const Assembly *assembly, const Parts *parts, const double *own, double *coordinates, int *moving, char *reason,
    size_t room
) {
    const int n = assembly->coordinates, m = assembly->constraints;
    double nearest[ROOM(MOST_COORDINATES)], turned[ROOM(MOST_COORDINATES)], most = 0.0;
    int closed = 0, back = 0;
    int ranks[ROOM(MOST_COORDINATES)] = {0};
    Closure closure = {.jacobian = dense_matrix(parts, OF_CLOSURE)};
    for (int j = 0; j < n; j++) moving[j] = 0;
    if (m == 0) return 1;
    rank_given(n, coordinates, own, assembly->written_coordinates, ranks);
    for (int least = 1; least <= 3; least++) { /* the rank from which on coordinates stay */
        for (int j = 0; j < n; j++) {
            if (ranks[j] < least) ranks[j] = 0;
            moving[j] = ranks[j] == 0;
        }
        memcpy(nearest, coordinates, sizeof(double) * (size_t)n);
        approach(assembly, parts, nearest, moving, &closure);
        if ((closed = closes(assembly, parts, nearest, &closure))) break;
        memcpy(turned, coordinates, sizeof(double) * (size_t)n);
        if ((back = turn_back(assembly, parts, turned, moving))) break;
        if (assembly->aligned) close_at(assembly, parts, nearest, &closure);
    }
    if (!closed && !back) {
        const double gap = largest_magnitude(closure.violation, m);
        const int over = turned_joint(assembly, parts);
        int worst = 0;
        if (gap < ASSEMBLED) {
            snprintf(
                reason, room,
                "%s cannot be assembled: from the given start values the loops close only with joint %s turned by half a "
                "turn against its own orientation; check points, axes and start values, or turn the joint's orientation "
                "by pi",
                assembly->name, assembly->aligned_names[over]
            );
            return 0;
        }
        for (int i = 0; i < m; i++) {
            if (fabs(closure.violation[i]) > fabs(closure.violation[worst])) worst = i;
        }
        snprintf(
            reason, room,
            "%s cannot be assembled: from the given start values the loops come no closer than %.3g at joint %s; "
            "check lengths, points and start values",
            assembly->name, gap, assembly->constraint_names[worst]
        );
        return 0;
    }
    if (back) { /* what has been turned over follows from the others, which stay */
        memcpy(nearest, turned, sizeof(double) * (size_t)n);
        close_at(assembly, parts, nearest, &closure);
        for (int j = 0; j < n; j++) {
            turned[j] = fabs(nearest[j] - coordinates[j]);
            most = larger(most, turned[j]);
        }
        for (int j = 0; j < n; j++) turned[j] = larger(turned[j] / most, LEAST_TURNED);
    }
    choose_dependent(assembly, parts, &closure, ranks, back ? turned : NULL, moving);
    for (int j = 0; j < n; j++) {
        if (moving[j]) coordinates[j] = nearest[j];
    }
    approach(assembly, parts, coordinates, moving, &closure);
    if (!closes(assembly, parts, coordinates, &closure)) {
        memcpy(coordinates, nearest, sizeof(double) * (size_t)n);
        for (int j = 0; j < n; j++) moving[j] = 1;
    }
    return 1;
}

/* Give velocities that leave the loops closed; what differs from the model's own was set. */
static void close_rates(
    const Assembly *assembly, const Parts *parts, const double *own, const double *coordinates, double *velocities
) {
    const int n = assembly->coordinates, m = assembly->constraints;
    int orders[ROOM(SQUARES_ORDERS(MOST_CONSTRAINTS, MOST_COORDINATES))];
    double *work = dense_matrix(parts, OF_WORK), *columns = dense_matrix(parts, OF_COLUMNS);
    double driven[ROOM(MOST_CONSTRAINTS)];
    double solution[ROOM(MOST_COORDINATES)];
    int dependent[ROOM(MOST_COORDINATES)], ranks[ROOM(MOST_COORDINATES)] = {0}, count = 0;
    Closure closure = {.jacobian = dense_matrix(parts, OF_CLOSURE)};
    if (m == 0) return;
    close_at(assembly, parts, coordinates, &closure);
    rank_given(n, velocities, own, assembly->written_velocities, ranks);
    choose_dependent(assembly, parts, &closure, ranks, NULL, dependent);
    for (int i = 0; i < m; i++) driven[i] = closure.drifts[i];
    for (int j = 0; j < n; j++) {
        if (dependent[j]) {
            memcpy(columns + m * count, closure.jacobian + m * j, sizeof(double) * (size_t)m);
            count++;
        } else {
            for (int i = 0; i < m; i++) driven[i] += closure.jacobian[i + m * j] * velocities[j];
        }
    }
    least_squares(m, count, columns, driven, solution, RANK_TOLERANCE, work, orders);
    for (int j = 0, k = 0; j < n; j++) {
        if (dependent[j]) velocities[j] = -solution[k++];
    }
}

static double scalar_product(int count, const double *one, const double *other) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += one[i] * other[i];
    return sum;
}

/* N (N' M N)^-1 N' times a load, in the directions N that constraints leave free, by the mass matrix. */
static void begin_by_mass(
    const Assembly *assembly, const Parts *parts, const Closure *closure, const double *load, double *first_motion
) {
    const int n = assembly->coordinates;
    double mass[ROOM(STRAIGHT * STRAIGHT)], basis[ROOM(STRAIGHT * STRAIGHT)], matrix[ROOM(STRAIGHT * STRAIGHT)];
    double work[ROOM(SQUARES_WORK(MOST(STRAIGHT, MOST_CONSTRAINTS), MOST(STRAIGHT, MOST_CONSTRAINTS)))];
    double rest[ROOM(MOST_COORDINATES)], rates[ROOM(MOST_STATES)], by_inputs[ROOM(STRAIGHT * MOST_INPUTS)];
    double right[ROOM(MOST_COORDINATES)], along[ROOM(MOST_COORDINATES)], moved[ROOM(MOST_COORDINATES)];
    int orders[ROOM(SQUARES_ORDERS(MOST_SIDE, MOST_SIDE))];
    assembly->equilibrium(parts, mass, rest, rates, by_inputs);
    const int freedom = null_space(assembly->constraints, n, closure->jacobian, basis, RANK_TOLERANCE, n, work, orders);
    for (int k = 0; k < freedom; k++) {
        for (int i = 0; i < n; i++) {
            moved[i] = 0.0;
            for (int j = 0; j < n; j++) moved[i] += mass[i + n * j] * basis[j + n * k];
        }
        right[k] = scalar_product(n, basis + n * k, load);
        for (int l = 0; l < freedom; l++) matrix[l + freedom * k] = scalar_product(n, basis + n * l, moved);
    }
    least_squares(freedom, freedom, matrix, right, along, RANK_TOLERANCE, work, orders);
    for (int i = 0; i < n; i++) {
        first_motion[i] = 0.0;
        for (int k = 0; k < freedom; k++) first_motion[i] += basis[i + n * k] * along[k];
    }
}

/* What a load begins in the open tree. */
static void free_tree(const Assembly *assembly, const Parts *parts, const double *load, double *first_motion) {
    double momenta[ROOM(MOST_COORDINATES)];
    Parts own = *parts;
    memcpy(momenta, load, sizeof(double) * (size_t)assembly->coordinates);
    own.momenta = momenta;
    assembly->freed(&own, first_motion);
}

/* The same as `begin_by_mass` for kernel loops: M^-1 (F - Phi_z' lambda), with multipliers that keep loops closed. */
static void begin_freed(
    const Assembly *assembly, const Parts *parts, const Closure *closure, const double *load, double *first_motion
) {
    const int n = assembly->coordinates, m = assembly->constraints;
    double *pushed = dense_matrix(parts, OF_COLUMNS), *matrix = dense_matrix(parts, OF_FACTORS);
    double opening[ROOM(MOST_CONSTRAINTS)], multipliers[ROOM(MOST_CONSTRAINTS)], row[ROOM(MOST_COORDINATES)];
    int orders[ROOM(SQUARES_ORDERS(MOST_SIDE, MOST_SIDE))];
    free_tree(assembly, parts, load, first_motion);
    if (m == 0) return;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) row[j] = closure->jacobian[i + m * j];
        free_tree(assembly, parts, row, pushed + n * i);
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) row[j] = closure->jacobian[i + m * j];
        opening[i] = scalar_product(n, row, first_motion);
        for (int k = 0; k < m; k++) matrix[i + m * k] = scalar_product(n, row, pushed + n * k);
    }
    least_squares(m, m, matrix, opening, multipliers, RANK_TOLERANCE, dense_matrix(parts, OF_WORK), orders);
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < n; j++) first_motion[j] -= pushed[j + n * k] * multipliers[k];
    }
}

/* Take off a load what constraints carry: what is left lies in the directions that they leave free. */
static void take_off_carried(const Assembly *assembly, const Parts *parts, const Closure *closure, double *load) {
    const int n = assembly->coordinates, m = assembly->constraints;
    double *columns = dense_matrix(parts, OF_COLUMNS), multipliers[ROOM(MOST_CONSTRAINTS)];
    int orders[ROOM(SQUARES_ORDERS(MOST_SIDE, MOST_SIDE))];
    if (m == 0) return;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) columns[j + n * i] = closure->jacobian[i + m * j];
    }
    least_squares(n, m, columns, load, multipliers, RANK_TOLERANCE, dense_matrix(parts, OF_WORK), orders);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) load[j] -= closure->jacobian[i + m * j] * multipliers[i];
    }
}

/* The balancing inputs that keep the system at rest at its coordinates with the other ones as the parts hold them; the
 * shortest where there are several. Where it does not stay at rest, returns the acceleration that is largest and its
 * index in `first`; else 0. */
static double balance(const Assembly *assembly, const Parts *parts, double *forces, int *first) {
    const int n = assembly->coordinates, count = assembly->balances;
    double rest[ROOM(MOST_COORDINATES)], right[ROOM(MOST_COORDINATES)], *matrix = dense_matrix(parts, OF_NEXT);
    double first_motion[ROOM(MOST_COORDINATES)], point[ROOM(MOST_COORDINATES)];
    int orders[ROOM(SQUARES_ORDERS(MOST_COORDINATES, MOST_INPUTS))];
    Closure closure = {.jacobian = dense_matrix(parts, OF_CLOSURE)};
    for (int j = 0; j < n; j++) parts->velocities[j] = 0.0;
    for (int column = 0; column < count; column++) parts->inputs[assembly->balance_inputs[column]] = 0.0;
    memcpy(point, parts->coordinates, sizeof(double) * (size_t)n);
    close_at(assembly, parts, point, &closure);
    assembly->standing(parts, rest, matrix);
    for (int i = 0; i < n; i++) right[i] = -rest[i];
    take_off_carried(assembly, parts, &closure, right);
    for (int column = 0; column < count; column++) take_off_carried(assembly, parts, &closure, matrix + n * column);
    least_squares(n, count, matrix, right, forces, RANK_TOLERANCE, dense_matrix(parts, OF_WORK), orders);
    for (int column = 0; column < count; column++) {
        for (int i = 0; i < n; i++) right[i] -= matrix[i + n * column] * forces[column];
    }
    if (!(magnitude(right, n) > UNBALANCED * MOST(largest_magnitude(rest, n), 1.0))) return 0.0;
    if (assembly->freed != NULL) {
        begin_freed(assembly, parts, &closure, right, first_motion);
    } else {
        begin_by_mass(assembly, parts, &closure, right, first_motion);
    }
    *first = 0;
    for (int i = 0; i < n; i++) {
        if (fabs(first_motion[i]) > fabs(first_motion[*first])) *first = i;
    }
    return first_motion[*first];
}
