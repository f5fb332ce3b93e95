/* A consistent start: connected values passed on in initialization mode, algebraic loops solved by Newton's method, in
 * the order and with the operations of mbsfmu/cosim/coupling/consistent_start.py. */
#ifndef MBSFMU_CONSISTENT_START_H
#define MBSFMU_CONSISTENT_START_H

#include "coupled_values.h"

enum { MOST_LOOP_ITERATIONS = 50 };
static const double CONVERGED = 1e-10, PERTURBATION = 1e-6; /* as consistent_start.py has them */

struct Part {
    struct Unit *unit;
    const struct PartSpec *spec;
    struct Port entries, outputs;
};

struct Group {
    const struct GroupSpec *spec;
    struct Part *parts;
    double *found, *trial, *residual, *scales, *matrix, *moved, *derivatives;
};

static int make_group(struct System *system, const struct GroupSpec *spec, struct Group *group)
{
    size_t n = spec->count;
    group->spec = spec;
    group->parts = room_for(system, spec->part_count, sizeof *group->parts);
    double *room = room_for(system, n * n + 5 * n + START_COLUMNS, sizeof *room);
    if (!group->parts || !room)
        return fails(system, "there is no memory for the start");
    group->found = room;
    group->trial = room + n;
    group->residual = room + 2 * n;
    group->scales = room + 3 * n;
    group->derivatives = room + 4 * n;
    group->matrix = room + 5 * n;
    group->moved = group->matrix + n * n;
    for (size_t k = 0; k < spec->part_count; k++) {
        struct Part *part = &group->parts[k];
        part->spec = &spec->parts[k];
        part->unit = &system->units[part->spec->component];
        if (!make_port(part->unit, &part->spec->entries.port, NULL, &part->entries) ||
            !make_port(part->unit, &part->spec->outputs, NULL, &part->outputs))
            return 0;
    }
    return 1;
}

/* Set entries from the values of all columns. */
static int write_entries(struct System *system, const struct EntriesSpec *spec, const struct Port *port,
                         const double *values)
{
    for (int k = 0; k < port->count; k++)
        port->values[k] = values[spec->sources[k]] * spec->factors[k] + spec->offsets[k];
    return port->count == 0 || went_well(system, write_port(&system->exchange, port));
}

static int evaluate_part(struct System *system, const struct Part *part, const double *values, double *found)
{
    if (!write_entries(system, &part->spec->entries, &part->entries, values) ||
        !went_well(system, read_port(&system->exchange, &part->outputs)))
        return 0;
    memcpy(found, part->outputs.values, part->outputs.count * sizeof *found);
    return 1;
}

static int evaluate_group(struct System *system, const struct Group *group, const double *values, double *found)
{
    size_t first = 0;
    for (size_t k = 0; k < group->spec->part_count; k++) {
        if (!evaluate_part(system, &group->parts[k], values, found + first))
            return 0;
        first += group->parts[k].outputs.count;
    }
    return 1;
}

/* Place of a column in a group; its count where it is outside. */
static size_t place_in(const struct GroupSpec *spec, ptrdiff_t column)
{
    size_t place = 0;
    while (place < spec->count && spec->columns[place] != column)
        place++;
    return place;
}

/* Derivatives of the outputs of a part by an entry, by the component itself; returns 0 where it gives none. */
static int derivative_by_unit(const struct Part *part, size_t entry, double *values)
{
    typedef int (*Plain)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, double *);
    typedef int (*Counting)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, size_t, double *,
                            size_t);
    const struct PartSpec *spec = part->spec;
    const double seed = 1.0;
    const size_t rows = part->outputs.count;
    const int is_old = part->unit->spec->version == 2;
    if (!spec->knowns)
        return 0;
    Function function =
        function_of(part->unit->library, is_old ? "fmi2GetDirectionalDerivative" : "fmi3GetDirectionalDerivative");
    if (!function)
        return 0;
    return WARNING >= (is_old ? ((Plain)function)(part->unit->component, spec->unknowns, rows, spec->knowns + entry, 1,
                                                  &seed, values)
                              : ((Counting)function)(part->unit->component, spec->unknowns, rows, spec->knowns + entry,
                                                     1, &seed, 1, values, rows));
}

/* Subtract from the identity the derivatives of a group's outputs by themselves. */
static int form_matrix(struct System *system, const struct Group *group, const double *values)
{
    const struct GroupSpec *spec = group->spec;
    size_t n = spec->count, first = 0;
    double *matrix = group->matrix;
    for (size_t k = 0; k < n * n; k++)
        matrix[k] = k % (n + 1) == 0 ? 1.0 : 0.0;
    for (size_t p = 0; p < spec->part_count; p++) {
        const struct Part *part = &group->parts[p];
        const struct EntriesSpec *entries = &part->spec->entries;
        const size_t rows = part->outputs.count;
        int is_given = 1;
        for (int entry = 0; entry < part->entries.count && is_given; entry++) {
            size_t column = place_in(spec, entries->sources[entry]);
            if (column == n)
                continue;
            is_given = derivative_by_unit(part, entry, group->derivatives);
            for (size_t row = 0; is_given && row < rows; row++)
                matrix[(first + row) * n + column] -= group->derivatives[row] * entries->factors[entry];
        }
        for (size_t column = 0; !is_given && column < n; column++) {
            double length = PERTURBATION * group->scales[column];
            memcpy(group->moved, values, START_COLUMNS * sizeof *values);
            group->moved[spec->columns[column]] += length;
            if (!evaluate_part(system, part, group->moved, group->derivatives))
                return 0;
            for (size_t row = 0; row < rows; row++)
                matrix[(first + row) * n + column] = ((first + row == column) ? 1.0 : 0.0) -
                                                     (group->derivatives[row] - group->found[first + row]) / length;
        }
        first += rows;
    }
    return 1;
}

/* Solve for the change of the real outputs by elimination with pivots in columns; the result stands in `residual`. */
static int solve_matrix(const struct Group *group)
{
    const size_t n = group->spec->count;
    double *a = group->matrix, *b = group->residual;
    for (size_t k = 0; k < n; k++) {
        if (group->spec->is_real[k])
            continue;
        for (size_t j = 0; j < n; j++)
            a[k * n + j] = a[j * n + k] = 0.0;
        a[k * n + k] = 1.0;
    }
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        if (a[pivot * n + k] == 0.0)
            return 0;
        for (size_t j = 0; j < n; j++) {
            double other = a[pivot * n + j];
            a[pivot * n + j] = a[k * n + j];
            a[k * n + j] = other;
        }
        double other = b[pivot];
        b[pivot] = b[k];
        b[k] = other;
        for (size_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (size_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
            b[i] -= factor * b[k];
        }
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++)
            b[k] -= a[k * n + j] * b[j];
        b[k] /= a[k * n + k];
    }
    return 1;
}

/* Solve y = Y(y) for the outputs of a loop; whole numbers and truth values are passed on as they come. */
static int solve_group(struct System *system, const struct Group *group, double *values)
{
    const struct GroupSpec *spec = group->spec;
    const size_t n = spec->count;
    double worst = 0.0;
    for (int k = 0; k < MOST_LOOP_ITERATIONS; k++) {
        for (size_t j = 0; j < n; j++)
            group->trial[j] = values[spec->columns[j]];
        if (!evaluate_group(system, group, values, group->found))
            return 0;
        worst = 0.0;
        for (size_t j = 0; j < n; j++) {
            double found = group->found[j], size = fabs(found);
            group->residual[j] = found - group->trial[j];
            group->scales[j] = size > spec->nominals[j] ? size : spec->nominals[j];
            double share = fabs(group->residual[j]) / group->scales[j];
            worst = share > worst || isnan(share) ? share : worst;
        }
        if (worst <= CONVERGED) {
            for (size_t j = 0; j < n; j++)
                values[spec->columns[j]] = group->found[j];
            return 1;
        }
        if (!form_matrix(system, group, values))
            return 0;
        if (!solve_matrix(group))
            return fails(system, "the algebraic loop of %.400s has no single solution at initialization: its equations "
                         "are singular", spec->names);
        for (size_t j = 0; j < n; j++)
            values[spec->columns[j]] = spec->is_real[j] ? group->trial[j] + group->residual[j] : group->found[j];
    }
    return fails(system, "initialization does not converge: the algebraic loop of %.400s still changes by %.3g of its "
                 "scale after %d iterations", spec->names, worst, MOST_LOOP_ITERATIONS);
}

#endif
