/* What is known of the components when the FMU is written; mbsfmu/exporting/coupled_tables.py writes the values. */
#ifndef MBSFMU_SYSTEM_TABLES_H
#define MBSFMU_SYSTEM_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* Variables of one type of a port, as `VariableBlock` of the master has them. */
struct BlockSpec {
    const char *get, *set;
    const uint32_t *references;
    size_t reference_count, count;
    const ptrdiff_t *places;
    int whole, shares;
};

/* Numeric variables of a component that are read or written together; references for derivatives by time. */
struct PortSpec {
    const struct BlockSpec *blocks;
    size_t block_count, count;
    const uint32_t *slope_references;
    size_t slope_count;
};

/* A port that takes columns of the outputs of all components, each multiplied by a factor, with an offset added. */
struct EntriesSpec {
    struct PortSpec port;
    const ptrdiff_t *sources;
    const double *factors, *offsets;
};

/* Type of a single value, as FMI 3.0 counts them; FMI 2.0 has Float64 and Int32, and words of its own for them. */
enum ValueType { FLOAT64, FLOAT32, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, BOOLEAN, STRING };

/* A variable of a component that is set by itself: an element of `size`, in event mode where that is asked for. */
struct TargetSpec {
    size_t component;
    const char *get, *set;
    uint32_t reference;
    size_t place, size;
    enum ValueType type;
    int at_event;
    double factor, offset;
};

/* A start value of the package. */
struct StartSpec {
    struct TargetSpec target;
    double value;
    const char *text;
};

enum VariableKind { GIVEN_PARAMETER, TUNABLE_PARAMETER, GIVEN_INPUT, GIVEN_STEP, READ_OUTPUT };

/* A variable of the FMU: what it sets, or the column that it shows, at the start and in steps. */
struct VariableSpec {
    const char *name;
    enum VariableKind kind;
    const struct TargetSpec *targets;
    size_t target_count, start_column, column;
    double start, factor, offset;
};

/* A component. */
struct ComponentSpec {
    const char *name, *folder, *library, *guid;
    int version, has_events, takes_any_step, saves_state, has_tolerance;
    double tolerance;
    const uint32_t *intermediate;
    size_t intermediate_count;
    /* at the start */
    struct EntriesSpec start_entries;
    struct PortSpec start_outputs;
    size_t first_start_output;
    /* in steps */
    struct EntriesSpec entries;
    struct PortSpec outputs;
    size_t first_entry, first_output;
    int converts, ramps, shares, rate, drives_later;
};

/* Outputs of one component in a group, with the entries that they depend on; the references of both, for directional
 * derivatives, are NULL where the component gives none. */
struct PartSpec {
    size_t component;
    struct EntriesSpec entries;
    struct PortSpec outputs;
    const uint32_t *knowns, *unknowns;
};

/* Outputs that are found together at the start: one, or those of an algebraic loop. */
struct GroupSpec {
    const ptrdiff_t *columns;
    size_t count;
    int is_loop;
    const unsigned char *is_real;
    const double *nominals;
    const struct PartSpec *parts;
    size_t part_count;
    const char *names;
};

#endif
