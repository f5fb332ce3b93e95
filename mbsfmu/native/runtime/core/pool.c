/* Threads that share work. C11 has them, but neither macOS nor older Windows do; OpenMP would be a library that targets lack:
 * so the few calls that are needed are those of POSIX and of Windows. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* for the processors that this process may use */
#endif
#include "model.h"

#include "pool.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOUSER
#define NOGDI
#include <windows.h>
typedef HANDLE Thread;
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Bell;
typedef DWORD Process;
#define STARTED DWORD WINAPI
#define this_process GetCurrentProcessId
#define lock_new InitializeSRWLock
#define lock_take AcquireSRWLockExclusive
#define lock_give ReleaseSRWLockExclusive
#define bell_new InitializeConditionVariable
#define bell_ring WakeAllConditionVariable
#define bell_wait(bell, lock) SleepConditionVariableSRW(bell, lock, INFINITE, 0)
#define let_others SwitchToThread
#define start(thread, run, given) ((*(thread) = CreateThread(NULL, 0, run, given, 0, NULL)) != NULL)
#define finish(thread) (WaitForSingleObject(thread, INFINITE), CloseHandle(thread))
#else
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
typedef pthread_t Thread;
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Bell;
typedef pid_t Process;
#define STARTED void *
#define this_process getpid
#define lock_new(lock) pthread_mutex_init(lock, NULL)
#define lock_take pthread_mutex_lock
#define lock_give pthread_mutex_unlock
#define bell_new(bell) pthread_cond_init(bell, NULL)
#define bell_ring pthread_cond_broadcast
#define bell_wait pthread_cond_wait
#define let_others sched_yield
#define start(thread, run, given) (pthread_create(thread, NULL, run, given) == 0)
#define finish(thread) pthread_join(thread, NULL)
#endif

/* Numbers that threads read while others write them, all in one order. */
#if defined(_MSC_VER) && !defined(__clang__)
#define read_shared(number) InterlockedCompareExchange(number, 0, 0)
#define write_shared(number, value) ((void)InterlockedExchange(number, value))
#define add_shared(number, value) ((void)InterlockedExchangeAdd(number, value))
#define replace_shared(number, old, value) (InterlockedCompareExchange(number, value, old) == (old))
#else
#define read_shared(number) __atomic_load_n(number, __ATOMIC_SEQ_CST)
#define write_shared(number, value) __atomic_store_n(number, value, __ATOMIC_SEQ_CST)
#define add_shared(number, value) ((void)__atomic_fetch_add(number, value, __ATOMIC_SEQ_CST))

static inline int replace_shared(long *number, long old, long value) {
    return __atomic_compare_exchange_n(number, &old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#endif
#if defined(_MSC_VER)
#define pause_shortly YieldProcessor
#elif defined(__x86_64__) || defined(__i386__)
#define pause_shortly __builtin_ia32_pause
#else
#define pause_shortly() ((void)0)
#endif

enum {
    PATIENCE = 4000, /* looks, some tens of microseconds, before others get the processor, or the thread sleeps … */
    LINE = 128       /* bytes that processors hand over at once */
};

typedef struct {
    Pool *pool;
    int number;
    long taken, done;   /* the last share of which somebody has taken its part, and of which it is done */
    char apart[LINE];   /* from what the next one writes */
} Member;

struct Pool {
    long share;         /* number of what is to be done */
    char apart[LINE];
    long running, sleeping, leaving;
    Part part;
    void *shared;
    int size, started;  /* members, and how many threads beside the one that shares */
    Process owner;
    Lock lock;
    Bell bell;
    Thread threads[THREADS_MOST];
    Member members[THREADS_MOST];
};

/* Sleep until there is another share than the last one. */
static void sleep_through(Pool *pool, long last) {
    lock_take(&pool->lock);
    add_shared(&pool->sleeping, 1);
    while (read_shared(&pool->share) == last) bell_wait(&pool->bell, &pool->lock);
    add_shared(&pool->sleeping, -1);
    lock_give(&pool->lock);
}

/* Do the own part of a share, and then those that nobody has taken yet: where there are less processors than threads, it may
 * be long before their own ones come to it. A share that is over has no such parts. */
static void do_parts(Pool *pool, int own, long share) {
    for (int k = 0; k < pool->size; k++) {
        const int number = (own + k) % pool->size;
        Member *member = &pool->members[number];
        if (!replace_shared(&member->taken, share - 1, share)) continue;
        pool->part(pool->shared, number);
        write_shared(&member->done, share);
    }
}

static STARTED take_part(void *given) {
    Member *member = given;
    Pool *pool = member->pool;
    for (long last = 0;;) {
        for (int looks = 0; read_shared(&pool->share) == last; looks++) {
            pause_shortly();
            if (looks < PATIENCE) continue;
            if (read_shared(&pool->running)) {
                let_others();
            } else {
                sleep_through(pool, last);
            }
            looks = 0;
        }
        last = read_shared(&pool->share);
        if (read_shared(&pool->leaving)) return 0;
        do_parts(pool, member->number, last);
    }
}

/* Let everybody know of a new share. */
static void announce(Pool *pool) {
    write_shared(&pool->share, pool->share + 1);
    if (!read_shared(&pool->sleeping)) return;
    lock_take(&pool->lock);
    bell_ring(&pool->bell);
    lock_give(&pool->lock);
}

static int processors(void) {
#if defined(_WIN32)
    SYSTEM_INFO found;
    GetSystemInfo(&found);
    return (int)found.dwNumberOfProcessors;
#elif defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
#else
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
}

INTERNAL Pool *pool_new(int threads) {
    Pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    const int most = processors();
    pool->owner = this_process();
    lock_new(&pool->lock);
    bell_new(&pool->bell);
    int size = threads < most ? threads : most;
    pool->size = size < THREADS_MOST ? size : THREADS_MOST; /* parts of those that cannot be made are done by others */
    for (int k = 1; k < pool->size; k++) {
        Member *member = &pool->members[k];
        member->pool = pool;
        member->number = k;
        if (!start(&pool->threads[k], take_part, member)) break;
        pool->started = k;
    }
    return pool;
}

INTERNAL int pool_size(const Pool *pool) { return pool->size; }

INTERNAL int pool_is_lost(const Pool *pool) { return pool->owner != this_process(); }

INTERNAL void pool_begin(Pool *pool) { write_shared(&pool->running, 1); }

INTERNAL void pool_end(Pool *pool) { write_shared(&pool->running, 0); }

INTERNAL void pool_share(Pool *pool, Part part, void *shared) {
    pool->part = part;
    pool->shared = shared;
    announce(pool);
    do_parts(pool, 0, pool->share);
    for (int k = 0; k < pool->size; k++) {
        for (int looks = 0; read_shared(&pool->members[k].done) != pool->share; looks++) {
            pause_shortly();
            if (looks >= PATIENCE) let_others(), looks = 0;
        }
    }
}

INTERNAL void pool_free(Pool *pool) {
    if (!pool) return;
    if (!pool_is_lost(pool)) { /* elsewhere there is nobody to wait for, and the lock may be taken for ever */
        write_shared(&pool->leaving, 1);
        announce(pool);
        for (int k = 1; k <= pool->started; k++) finish(pool->threads[k]);
    }
    free(pool);
}
