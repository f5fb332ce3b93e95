/* Shows what came in, or gives what the test knows: for each function of FMI 2.0 that crosses to another side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmi2.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static const fmi2CallbackFunctions *host;
static char said[2000];

static fmi2Status tell(const char *text)
{
    host->logger(host->componentEnvironment, "echo", fmi2Warning, "logAll", "%s", text);
    return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                     const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    host = functions;
    if (!strcmp(name, "none")) return NULL;
    snprintf(said, sizeof said, "%s|%d|%s|%s|%d|%d", name, (int)type, guid, resources, visible, logging);
    tell(said);
    puts("what an FMU prints is no reply");
    fflush(stdout);
    return functions->allocateMemory(1, 8);
}
EXPORT void fmi2FreeInstance(fmi2Component c) { host->freeMemory(c); tell("freed"); }
EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    (void)c;
    snprintf(said, sizeof said, "%d|%d|%s|%s", on, (int)n, categories[0], categories[1] ? categories[1] : "null");
    return tell(said);
}
EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real d, fmi2Boolean e, fmi2Real f)
{
    (void)c;
    snprintf(said, sizeof said, "%d|%g|%g|%d|%g", a, b, d, e, f);
    return tell(said);
}
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { (void)c; return fmi2Discard; }
EXPORT fmi2Status fmi2Reset(fmi2Component c)
{
    (void)c;
    *(volatile int *)8 = 1;
    return fmi2OK;
}
EXPORT fmi2Status fmi2CancelStep(fmi2Component c)
{
    (void)c;
    for (const clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        ;
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[])
{
    (void)c;
    for (size_t i = 0; i < n; ++i) v[i] = r[i] / 3.0;
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2String v[])
{
    static char text[4][20];
    (void)c;
    for (size_t i = 0; i < n; ++i) snprintf(text[i], sizeof text[i], "\xc3\xbc%u", r[i]), v[i] = r[i] ? text[i] : NULL;
    return fmi2Warning;
}
EXPORT fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2String v[])
{
    (void)c;
    snprintf(said, sizeof said, "%u|%d|%s|%s", r[0], (int)n, v[0], v[1] ? v[1] : "null");
    return tell(said);
}
EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference u[], size_t m,
                                               const fmi2ValueReference k[], size_t n, const fmi2Real d[], fmi2Real v[])
{
    (void)c;
    for (size_t i = 0; i < m; ++i) {
        v[i] = 0.0;
        for (size_t j = 0; j < n; ++j) v[i] += (u[i] + 10.0 * k[j]) * d[j];
    }
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                               const fmi2Integer o[], fmi2Real v[])
{
    (void)c;
    for (size_t i = 0; i < n; ++i) v[i] = r[i] + 0.5 * o[i];
    return fmi2OK;
}
EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean f)
{
    (void)c;
    snprintf(said, sizeof said, "%.17g|%.17g|%d", t, h, f);
    tell("first");
    return tell(said);
}
EXPORT fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v)
{
    (void)c;
    snprintf(said, sizeof said, "kind %d", (int)k);
    *v = said;
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s)
{
    (void)c;
    *s = *s ? (void *)((char *)*s + 1) : (void *)0x123456789abcd;
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n)
{
    (void)c;
    *n = (size_t)s + 1;
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n)
{
    (void)c, (void)s;
    for (size_t i = 0; i < n; ++i) b[i] = (fmi2Byte)(i % 251);
    return fmi2OK;
}
EXPORT fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *e)
{
    (void)c;
    e->terminateSimulation = e->newDiscreteStatesNeeded + 1;
    e->nextEventTimeDefined = 1;
    e->nextEventTime = 2.5;
    return fmi2OK;
}
EXPORT fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean f, fmi2Boolean *a, fmi2Boolean *b)
{
    (void)c;
    *a = f, *b = 7;
    return fmi2OK;
}
EXPORT fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    (void)c;
    snprintf(said, sizeof said, "%d|%g", (int)n, n ? x[n - 1] : -1.0);
    return tell(said);
}
