/* The head of every saved state: which unit it is of. A host may hand back what is none, or that of another FMU. */
#ifndef MBSFMU_SAVED_HEAD_H
#define MBSFMU_SAVED_HEAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SAVED_MARK "mbsfmu\0\2" /* first bytes of every saved state; the last one is the version of this layout */

typedef struct {
    char mark[8];
    char identity[64];              /* the unit's identity; zeros behind it */
    uint64_t size, checksum;        /* of the whole in bytes, and of what follows */
} SavedHead;

/* Write the head of a state of this unit, of a size in bytes; without its checksum. */
static void write_head(SavedHead *head, size_t size) {
    memset(head, 0, sizeof *head);
    memcpy(head->mark, SAVED_MARK, sizeof head->mark);
    memcpy(head->identity, IDENTITY, sizeof(IDENTITY));
    head->size = size;
}

/* Why a head is not that of a state of this unit, of a size in bytes; NULL where it is. */
static const char *objection_to_head(const SavedHead *head, size_t size) {
    const char identity[sizeof head->identity] = IDENTITY;
    if (memcmp(head->mark, SAVED_MARK, sizeof head->mark) != 0) return "it is no state of a unit of this kind";
    if (memcmp(head->identity, identity, sizeof identity) != 0) return "it is the state of another FMU";
    return head->size == size ? NULL : "its size is not that of a state of this FMU";
}

#endif
