/* Has bytes that are set, whose number and sum it gives; and a vector whose size is a structural parameter. */
#include "unit3.h"

#define UNIT_TOKEN "{5f0e7a7e-receiver}"
#define HAS_EVENT_MODE 0
#define TAKES_BINARY

enum { COUNT_OF_BYTES, SUM_OF_BYTES, VECTOR, MESSAGE, SIZE, TIME };

static const Variable variables[] = {
    {FLOAT64, 0, 1, NEITHER}, {FLOAT64, 1, 1, NEITHER}, {FLOAT64, 2, 3, INPUT}, {STRING, 0, 1, NEITHER}, {UINT64, 0, 1, NEITHER},
    {FLOAT64, 5, 1, NEITHER},
};

static void start(Values *values) { values->uint64[0] = 3; }
static void update(Values *values) { values->float64[5] = values->time; }

static Status advance(Values *values, double to, Outcome *outcome)
{
    (void)values;
    outcome->reached = to;
    return OK;
}

static void handle(Values *values) { (void)values; }

static double derivative(const Values *values, size_t unknown, size_t i, size_t known, size_t k)
{
    (void)values, (void)unknown, (void)i, (void)known, (void)k;
    return 0.0;
}

#include "functions3.c"

EXPORT3 Status fmi3SetBinary(void *component, const uint32_t *references, size_t count, const size_t *sizes,
                             const uint8_t *const *bytes, size_t n)
{
    Unit *unit = component;
    if (count != 1 || n != 1 || references[0] != MESSAGE)
        return refuse(unit, ERROR, "fmi3SetBinary of another variable");
    unit->values.float64[COUNT_OF_BYTES] = (double)sizes[0];
    unit->values.float64[SUM_OF_BYTES] = 0.0;
    for (size_t i = 0; i < sizes[0]; i++)
        unit->values.float64[SUM_OF_BYTES] += bytes[0][i];
    return OK;
}
