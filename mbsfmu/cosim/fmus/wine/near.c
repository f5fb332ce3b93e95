/* The side of the host: a library that looks to importers like the FMU's own, and asks a program under Wine.

Each instance has a program of its own, from its instantiation on. Where that ends, the FMU has failed for good. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "messages.h"

#define EXPORTED __attribute__((visibility("default")))

struct unit {
    packet out, in;
    int to, from, line;
    pid_t program, guard;
    char *name;
    const fmi2CallbackFunctions *callbacks;
};

static packet *written(unit *u) { return &u->out; }
static packet *received(unit *u) { return &u->in; }

extern char **environ;

static void say(unit *u, fmi2Status status, fmi2String category, fmi2String text) {
    u->callbacks->logger(u->callbacks->componentEnvironment, u->name, status, category, "%s", text);
}

static int write_all(int to, const void *bytes, size_t size) {
    for (const char *at = bytes; size;) {
        const ssize_t done = write(to, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        at += done;
        size -= (size_t)done;
    }
    return 1;
}

static int read_all(int from, void *bytes, size_t size) {
    for (char *at = bytes; size;) {
        const ssize_t done = read(from, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        at += done;
        size -= (size_t)done;
    }
    return 1;
}

static void begin(unit *u, uint32_t number) {
    u->out.used = 0;
    const uint64_t length = 0; /* known when it is sent */
    add(&u->out, &length, sizeof length);
    add(&u->out, &number, sizeof number);
}

static void let_go(int *pipe) {
    if (*pipe >= 0) close(*pipe);
    *pipe = -1;
}

static void wait_for(pid_t *process) {
    if (*process)
        while (waitpid(*process, NULL, 0) < 0 && errno == EINTR) {}
    *process = 0;
}

static void end(unit *u) {
    let_go(&u->to);
    let_go(&u->from);
    wait_for(&u->program);
    if (u->line >= 0) write_all(u->line, "\n", 1);
    let_go(&u->line);
    wait_for(&u->guard);
}

/* Exchange a message: whether a reply came. */
static int exchange(unit *u) {
    const uint64_t length = u->out.used - sizeof length;
    uint64_t size;
    memcpy(u->out.bytes, &length, sizeof length);
    u->in.used = u->in.read = 0;
    if (u->to < 0 || !write_all(u->to, u->out.bytes, u->out.used)) return 0;
    if (!read_all(u->from, &size, sizeof size)) return 0;
    if (size > u->in.room) {
        free(u->in.bytes);
        u->in.bytes = malloc(size);
        u->in.room = u->in.bytes ? size : 0;
        if (!u->in.bytes) return 0;
    }
    if (!read_all(u->from, u->in.bytes, size)) return 0;
    u->in.used = size;
    return 1;
}

/* Send a request and wait for its reply: the status, what was logged being handed on. */
static fmi2Status ask(unit *u) {
    if (!exchange(u)) {
        if (u->to >= 0) say(u, fmi2Fatal, "error", "the program that runs it under Wine has ended; what Wine says of it stands on the stream of errors");
        end(u);
        return fmi2Fatal;
    }
    int32_t status;
    uint32_t count;
    unpack_value(u, &status, sizeof status);
    unpack_value(u, &count, sizeof count);
    for (uint32_t i = 0; i < count; ++i) {
        int32_t worth;
        unpack_value(u, &worth, sizeof worth);
        const fmi2String category = next_string(&u->in), text = next_string(&u->in);
        say(u, (fmi2Status)worth, category ? category : "", text ? text : "");
    }
    return (fmi2Status)status;
}

/* Strings stay where they came until the next call, as the standard promises them. */
static void unpack_strings(unit *u, fmi2String *values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = next_string(&u->in);
}

/* Start a process that reads from `in` and writes to `out`, where these are not negative: an errno, 0 if started. */
static int spawn(pid_t *process, char *const arguments[], char **environment, int in, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, 0);
    if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
    const int failed = posix_spawnp(process, arguments[0], &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) *process = 0;
    return failed;
}

/* Start the program beside this library, with pipes to its standard streams: an errno, 0 where it was started.

A shell guards it: it waits for a line, and ends the program where none comes because this process is gone, whatever
ended it. A program that waits for a request would end by itself, one whose FMU does not come back would not. */
static int start(unit *u, char *program) {
    int pipes[6] = {-1, -1, -1, -1, -1, -1};
    int failed = 0;
    for (int i = 0; i < 3 && !failed; ++i)
        if (pipe2(pipes + 2 * i, O_CLOEXEC)) failed = errno;
    u->to = pipes[1];
    u->from = pipes[2];
    u->line = pipes[5];
    size_t count = 0;
    while (environ[count]) ++count;
    char **environment = calloc(count + 2, sizeof *environment);
    if (!environment) abort();
    memcpy(environment, environ, count * sizeof *environment);
    static char quiet[] = "WINEDEBUG=-all";
    if (!getenv("WINEDEBUG")) environment[count] = quiet;
    char *const call[] = {"wine", program, NULL};
    if (!failed) failed = spawn(&u->program, call, environment, pipes[0], pipes[3]);
    free(environment);

    char number[24];
    snprintf(number, sizeof number, "%ld", (long)u->program);
    char *const guard[] = {"sh", "-c", "trap '' INT; read -r line || kill -KILL $0", number, NULL};
    if (!failed) failed = spawn(&u->guard, guard, environ, pipes[4], -1);
    let_go(pipes);
    let_go(pipes + 3);
    let_go(pipes + 4);
    return failed;
}

static void discard(unit *u) {
    end(u);
    free(u->out.bytes);
    free(u->in.bytes);
    free(u->name);
    free(u);
}

static char *joined(const char *first, const char *second, const char *third) {
    const size_t size = strlen(first) + strlen(second) + strlen(third) + 1;
    char *text = malloc(size);
    if (!text) abort();
    snprintf(text, size, "%s%s%s", first, second, third);
    return text;
}

EXPORTED const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORTED const char *fmi2GetVersion(void) { return "2.0"; }

EXPORTED fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                       const fmi2CallbackFunctions *functions, fmi2Boolean visible,
                                       fmi2Boolean logging) {
    static const char scheme[] = "file:///";
    if (!functions || !functions->logger) return NULL;
    unit *u = calloc(1, sizeof *u);
    Dl_info here;
    if (!u || !dladdr((void *)fmi2GetVersion, &here)) abort();
    u->to = u->from = u->line = -1;
    u->callbacks = functions;
    u->name = joined(name ? name : "", "", "");

    /* …/binaries/linux64/name.so stands for …/binaries/win64/name.dll; Wine has the root of the files as its drive Z. */
    char *library = joined(here.dli_fname, "", ""), *file = strrchr(library, '/');
    *file++ = '\0';
    *strrchr(file, '.') = '\0';
    char *program = joined(library, "/", "under_wine.exe");
    *strrchr(library, '/') = '\0';
    char *folder = joined("Z:", library, "/win64/"), *theirs = joined(folder, file, ".dll");
    char *place = resources && !strncmp(resources, scheme, strlen(scheme))
        ? joined(scheme, "Z:/", resources + strlen(scheme)) : resources ? joined(resources, "", "") : NULL;

    const int32_t kind = type, seen = visible, told = logging;
    const int failed = start(u, program);
    begin(u, INSTANTIATE);
    add_string(&u->out, theirs);
    add_string(&u->out, name);
    add_string(&u->out, guid);
    add_string(&u->out, place);
    pack_value(u, &kind, sizeof kind);
    pack_value(u, &seen, sizeof seen);
    pack_value(u, &told, sizeof told);
    free(library);
    free(program);
    free(folder);
    free(theirs);
    free(place);
    if (failed) say(u, fmi2Fatal, "error", strerror(failed));
    if (failed || ask(u) > fmi2Warning) {
        discard(u);
        return NULL;
    }
    return u;
}

EXPORTED void fmi2FreeInstance(fmi2Component instance) {
    unit *u = instance;
    if (!u) return;
    begin(u, FREE_INSTANCE);
    if (u->to >= 0) ask(u);
    discard(u);
}

#include "near_functions.h"
