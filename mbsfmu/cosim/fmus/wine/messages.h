/* Messages between the two sides of an FMU that runs under Wine.

A message has its length with 64 bits and its content. A request begins with the number of a function, its arguments
follow: first values, then what is read. A reply has the status, the messages that the FMU has logged, and what was
written. Both sides are little-endian machines with types of one length. */
#ifndef MBSFMU_WINE_MESSAGES_H
#define MBSFMU_WINE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"

enum { INSTANTIATE = 1000, FREE_INSTANCE = 1001 };

typedef struct {
    unsigned char *bytes;
    size_t used, room, read;
} packet;

typedef struct unit unit;

static packet *written(unit *u);
static packet *received(unit *u);

static void add(packet *to, const void *bytes, size_t size) {
    if (to->used + size > to->room) {
        to->room = 2 * (to->used + size);
        to->bytes = realloc(to->bytes, to->room);
        if (!to->bytes) abort();
    }
    if (size) memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

/* The next bytes of a packet; null where it has no more. */
static const void *next(packet *from, size_t size) {
    if (size > from->used - from->read) {
        from->read = from->used;
        return NULL;
    }
    from->read += size;
    return from->bytes + from->read - size;
}

static void add_string(packet *to, fmi2String text) {
    const uint64_t size = text ? strlen(text) + 1 : 0;
    add(to, &size, sizeof size);
    if (text) add(to, text, size);
}

static fmi2String next_string(packet *from) {
    uint64_t size = 0;
    const void *found = next(from, sizeof size);
    if (found) memcpy(&size, found, sizeof size);
    return size ? next(from, size) : NULL;
}

static void pack_value(unit *u, const void *value, size_t size) { add(written(u), value, size); }

static void unpack_value(unit *u, void *value, size_t size) {
    const void *found = next(received(u), size);
    if (found) memcpy(value, found, size);
    else memset(value, 0, size);
}

static void pack_array(unit *u, const void *values, size_t count, size_t size) {
    const unsigned char given = values != NULL;
    add(written(u), &given, 1);
    if (given) add(written(u), values, count * size);
}

static void unpack_array(unit *u, void *values, size_t count, size_t size) {
    const unsigned char *given = next(received(u), 1);
    if (!given || !*given) return;
    const void *found = next(received(u), count * size);
    if (found && values && count) memcpy(values, found, count * size);
}

static void pack_strings(unit *u, const fmi2String *values, size_t count) {
    for (size_t i = 0; i < count; ++i) add_string(written(u), values ? values[i] : NULL);
}

#endif
