/* What an instance says, to the layer above it. */
#ifndef MBSFMU_REPORT_H
#define MBSFMU_REPORT_H

#include "instance.h"

static void report(Instance *instance, Status status, const char *format, ...) {
    char sentence[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    instance->logger(instance->environment, status, sentence);
}

/* Say why a call is not done, and return that. */
#define REFUSE(...) (report(instance, REFUSED, __VA_ARGS__), REFUSED)

#endif
