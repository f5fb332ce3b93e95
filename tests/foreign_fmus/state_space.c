/* x' = A x + B u with n states and m inputs, which are structural parameters; y = x. Also for model exchange. */
#include "unit3.h"

#define UNIT_TOKEN "{b1f0c7a2-state-space}"
#define HAS_EVENT_MODE 0
#define HAS_STATES
#define MOST 4
#define SUBSTEP 1e-3 /* s */

enum { N, M, A, B, X0, U, Y, SUM, CONFIGURED, GAIN, TIME, RATES };

static const Variable variables[] = {
    {UINT64, 0, 1, STRUCTURAL}, {UINT64, 1, 1, STRUCTURAL}, {FLOAT64, 0, 0, SETTABLE},  {FLOAT64, 16, 0, SETTABLE},
    {FLOAT64, 32, 0, SETTABLE}, {FLOAT64, 36, 0, INPUT},    {FLOAT64, 40, 0, NEITHER}, {FLOAT64, 44, 1, NEITHER},
    {UINT32, 0, 1, NEITHER},    {FLOAT64, 45, 1, STRUCTURAL}, {FLOAT64, 46, 1, NEITHER},
    {FLOAT64, 48, 0, NEITHER},
};

static size_t size_of(const Values *values, size_t reference)
{
    size_t n = values->uint64[0], m = values->uint64[1];
    return reference == A                                      ? n * n
           : reference == B                                    ? n * m
           : reference == U                                    ? m
           : reference == X0 || reference == Y || reference == RATES ? n
                                                                     : 1;
}

#define SIZE_OF size_of
#define AT(REFERENCE) (values->float64 + variables[REFERENCE].first)

/* A = -diag(1, 2, ...), B and x0 of ones, as the description has it for two states and one input. */
static void defaults(Values *values)
{
    size_t n = values->uint64[0], m = values->uint64[1];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++)
            AT(A)[i * n + k] = i == k ? -(double)(i + 1) : 0.0;
        for (size_t k = 0; k < m; k++)
            AT(B)[i * m + k] = 1.0;
        AT(X0)[i] = 1.0;
    }
    for (size_t k = 0; k < m; k++)
        AT(U)[k] = 0.0;
}

static void start(Values *values)
{
    values->uint64[0] = 2;
    values->uint64[1] = 1;
    *AT(GAIN) = 1.0;
    defaults(values);
}

static const char *configured(Values *values)
{
    if (values->uint64[0] > MOST || values->uint64[1] > MOST)
        return "there is room for four states and four inputs";
    defaults(values);
    values->uint32[0]++;
    return NULL;
}

static void rates(const Values *values, const double *x, double *result);

static void update(Values *values)
{
    size_t n = values->uint64[0];
    if (values->hidden[0] == 0.0)
        memcpy(AT(Y), AT(X0), n * sizeof(double));
    *AT(TIME) = values->time;
    rates(values, AT(Y), AT(RATES));
    *AT(SUM) = 0.0;
    for (size_t i = 0; i < n; i++)
        *AT(SUM) += *AT(GAIN) * AT(Y)[i];
}

static void rates(const Values *values, const double *x, double *result)
{
    size_t n = values->uint64[0], m = values->uint64[1];
    for (size_t i = 0; i < n; i++) {
        result[i] = 0.0;
        for (size_t k = 0; k < n; k++)
            result[i] += AT(A)[i * n + k] * x[k];
        for (size_t k = 0; k < m; k++)
            result[i] += AT(B)[i * m + k] * AT(U)[k];
    }
}

static Status advance(Values *values, double to, Outcome *outcome)
{
    size_t n = values->uint64[0];
    update(values);
    values->hidden[0] = 1.0; /* it has left its start */
    size_t count = (size_t)ceil((to - values->time) / SUBSTEP - 1e-9);
    double h = (to - values->time) / (double)count, *x = AT(Y), k[4][MOST], between[MOST];
    for (size_t step = 0; step < count; step++) {
        static const double nodes[] = {0.0, 0.5, 0.5, 1.0};
        for (size_t stage = 0; stage < 4; stage++) {
            for (size_t i = 0; i < n; i++)
                between[i] = x[i] + (stage ? h * nodes[stage] * k[stage - 1][i] : 0.0);
            rates(values, between, k[stage]);
        }
        for (size_t i = 0; i < n; i++)
            x[i] += h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    }
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

/* -- model exchange; its continuous-time mode is the step mode of the others -- */

EXPORT3 void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                           bool logging, void *environment, Logger logger)
{
    Unit *unit = fmi3InstantiateCoSimulation(name, token, resources, visible, logging, false, false, NULL, 0,
                                             environment, logger, NULL);
    if (unit)
        unit->uses_events = true;
    return unit;
}

EXPORT3 Status fmi3EnterContinuousTimeMode(void *component)
{
    Unit *unit = component;
    if (unit->mode != EVENT)
        return in_wrong_mode(unit, "fmi3EnterContinuousTimeMode");
    unit->mode = STEP;
    return OK;
}

EXPORT3 Status fmi3CompletedIntegratorStep(void *component, bool no_return, bool *event, bool *ends)
{
    (void)component, (void)no_return;
    *event = *ends = false;
    return OK;
}

EXPORT3 Status fmi3SetTime(void *component, double time)
{
    ((Unit *)component)->values.time = time;
    return OK;
}

static bool fits(const Unit *unit, size_t count) { return count == unit->values.uint64[0]; }

EXPORT3 Status fmi3SetContinuousStates(void *component, const double *states, size_t count)
{
    Unit *unit = component;
    Values *values = &unit->values;
    if (!fits(unit, count))
        return refuse(unit, ERROR, "fmi3SetContinuousStates of another number of states");
    values->hidden[0] = 1.0;
    memcpy(AT(Y), states, count * sizeof *states);
    return OK;
}

static Status copy_of(Unit *unit, size_t reference, double *result, size_t count)
{
    Values *values = &unit->values;
    if (!fits(unit, count))
        return refuse(unit, ERROR, "another number of states");
    update(values);
    memcpy(result, AT(reference), count * sizeof *result);
    return OK;
}

EXPORT3 Status fmi3GetContinuousStates(void *component, double *states, size_t count)
{
    return copy_of(component, Y, states, count);
}

EXPORT3 Status fmi3GetContinuousStateDerivatives(void *component, double *derivatives, size_t count)
{
    return copy_of(component, RATES, derivatives, count);
}

EXPORT3 Status fmi3GetNominalsOfContinuousStates(void *component, double *nominals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nominals[i] = 1.0;
    return fits(component, count) ? OK : refuse(component, ERROR, "another number of states");
}

EXPORT3 Status fmi3GetNumberOfContinuousStates(void *component, size_t *count)
{
    *count = ((Unit *)component)->values.uint64[0];
    return OK;
}

EXPORT3 Status fmi3GetNumberOfEventIndicators(void *component, size_t *count)
{
    (void)component;
    *count = 0;
    return OK;
}

EXPORT3 Status fmi3GetEventIndicators(void *component, double *indicators, size_t count)
{
    (void)indicators;
    return count ? refuse(component, ERROR, "there are no event indicators") : OK;
}
