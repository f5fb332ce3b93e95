/* Threads that share work: they are made once, wait for the next share without sleeping while a run goes on, and sleep
 * soon after. What is shared is the user's; a pool knows nothing of it. */
#ifndef MBSFMU_POOL_H
#define MBSFMU_POOL_H

#include "visibility.h"

typedef struct Pool Pool;

/* Do the part of one thread of what is shared; threads count from 0, which is the one that shares. */
typedef void (*Part)(void *shared, int thread);

#define pool_new NAMED(mbsfmu_pool_new)
#define pool_size NAMED(mbsfmu_pool_size)
#define pool_is_lost NAMED(mbsfmu_pool_is_lost)
#define pool_begin NAMED(mbsfmu_pool_begin)
#define pool_share NAMED(mbsfmu_pool_share)
#define pool_end NAMED(mbsfmu_pool_end)
#define pool_free NAMED(mbsfmu_pool_free)

/* Make a pool of as many threads, this one among them, or of fewer: no more than there are processors. NULL without memory. */
INTERNAL Pool *pool_new(int threads);
INTERNAL int pool_size(const Pool *pool);
/* Whether its threads are those of another process, from which this one was forked. */
INTERNAL int pool_is_lost(const Pool *pool);
/* Between these nobody sleeps. */
INTERNAL void pool_begin(Pool *pool);
INTERNAL void pool_end(Pool *pool);
/* Let all threads do their parts; return when all are done. */
INTERNAL void pool_share(Pool *pool, Part part, void *shared);
INTERNAL void pool_free(Pool *pool);

#endif
