/* The side of Windows: a program that loads the FMU's library and does what the other side asks, until that is gone. */
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <stdarg.h>
#include <stdio.h>

#include "messages.h"

/* Memory of one message. */
typedef struct block {
    struct block *next;
    double content[];
} block;

struct unit {
    packet out, in;
    block *blocks;
};

static packet *written(unit *u) { return &u->out; }
static packet *received(unit *u) { return &u->in; }

static void *room_array(unit *u, size_t count, size_t size) {
    block *made = calloc(1, sizeof *made + count * size + 1);
    if (!made) abort();
    made->next = u->blocks;
    u->blocks = made;
    return made->content;
}

/* What was sent, where its type may lie; null where the other side had nothing. */
static void *taken_array(unit *u, size_t count, size_t size) {
    const unsigned char *given = next(received(u), 1);
    if (!given || !*given) return NULL;
    const void *found = next(received(u), count * size);
    void *made = room_array(u, count, size);
    if (found && count) memcpy(made, found, count * size);
    return made;
}

static fmi2String *room_strings(unit *u, size_t count) { return room_array(u, count, sizeof(fmi2String)); }

static fmi2String *taken_strings(unit *u, size_t count) {
    fmi2String *made = room_strings(u, count);
    for (size_t i = 0; i < count; ++i) made[i] = next_string(received(u));
    return made;
}

#include "far_functions.h"

enum { FUNCTIONS = sizeof NAMES / sizeof *NAMES };

static HANDLE requests, replies;
static packet logged;
static uint32_t messages;
static CRITICAL_SECTION logging; /* an FMU may log in threads of its own */

static void log_text(fmi2Status status, fmi2String category, fmi2String text) {
    const int32_t worth = status;
    EnterCriticalSection(&logging);
    add(&logged, &worth, sizeof worth);
    add_string(&logged, category ? category : "");
    add_string(&logged, text);
    ++messages;
    LeaveCriticalSection(&logging);
}

static void log_message(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                        fmi2String message, ...) {
    (void)environment;
    (void)name;
    va_list values, again;
    va_start(values, message);
    va_copy(again, values);
    const int length = vsnprintf(NULL, 0, message ? message : "", values);
    char *text = calloc(1, length > 0 ? (size_t)length + 1 : 1);
    if (!text) abort();
    if (length > 0) vsnprintf(text, (size_t)length + 1, message, again);
    va_end(again);
    va_end(values);
    log_text(status, category, text);
    free(text);
}

static const fmi2CallbackFunctions CALLBACKS = {log_message, calloc, free, NULL, NULL};

static int read_all(void *bytes, size_t size) {
    for (char *at = bytes; size;) {
        DWORD done = 0;
        const DWORD wanted = size > INT32_MAX ? INT32_MAX : (DWORD)size;
        if (!ReadFile(requests, at, wanted, &done, NULL) || !done) return 0;
        at += done;
        size -= done;
    }
    return 1;
}

static void write_all(const void *bytes, size_t size) {
    for (const char *at = bytes; size;) {
        DWORD done = 0;
        const DWORD wanted = size > INT32_MAX ? INT32_MAX : (DWORD)size;
        if (!WriteFile(replies, at, wanted, &done, NULL) || !done) ExitProcess(1);
        at += done;
        size -= done;
    }
}

static void reply(unit *u, fmi2Status status) {
    const int32_t worth = status;
    EnterCriticalSection(&logging);
    const uint64_t length = sizeof worth + sizeof messages + logged.used + u->out.used;
    static packet whole; /* one write: the other side is woken once */
    whole.used = 0;
    add(&whole, &length, sizeof length);
    add(&whole, &worth, sizeof worth);
    add(&whole, &messages, sizeof messages);
    add(&whole, logged.bytes, logged.used);
    add(&whole, u->out.bytes, u->out.used);
    logged.used = 0;
    messages = 0;
    LeaveCriticalSection(&logging);
    write_all(whole.bytes, whole.used);
}

static HMODULE load(fmi2String path) {
    WCHAR wide[4096];
    if (!path || !MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, (int)(sizeof wide / sizeof *wide))) return NULL;
    for (WCHAR *at = wide; *at; ++at)
        if (*at == L'/') *at = L'\\';
    return LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

typedef fmi2Component (*Instantiate)(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *,
                                     fmi2Boolean, fmi2Boolean);

static fmi2Component instantiate(unit *u, HMODULE *library) {
    char text[128];
    const fmi2String path = next_string(&u->in), name = next_string(&u->in), guid = next_string(&u->in);
    const fmi2String place = next_string(&u->in);
    int32_t kind, seen, told;
    unpack_value(u, &kind, sizeof kind);
    unpack_value(u, &seen, sizeof seen);
    unpack_value(u, &told, sizeof told);
    *library = load(path);
    if (!*library) {
        const unsigned long code = GetLastError();
        const char *why = code == ERROR_MOD_NOT_FOUND ? ": a library that it needs is missing" : "";
        snprintf(text, sizeof text, "Wine cannot load its library, error %lu of Windows%s", code, why);
        log_text(fmi2Fatal, "error", text);
        return NULL;
    }
    const Instantiate function = (Instantiate)(void (*)(void))GetProcAddress(*library, "fmi2Instantiate");
    if (!function) {
        log_text(fmi2Fatal, "error", "its library for Windows has no function fmi2Instantiate");
        return NULL;
    }
    return function(name, (fmi2Type)kind, guid, place, &CALLBACKS, seen, told);
}

/* No window and no debugger where the FMU does what it may not: the other side finds that this program has ended. */
static LONG WINAPI ended(EXCEPTION_POINTERS *what) {
    (void)what;
    TerminateProcess(GetCurrentProcess(), 3);
    return EXCEPTION_EXECUTE_HANDLER;
}

int main(void) {
    /* What the FMU prints goes to the stream of errors: the other one is for replies alone. */
    const HANDLE self = GetCurrentProcess();
    DuplicateHandle(self, GetStdHandle(STD_INPUT_HANDLE), self, &requests, 0, FALSE, DUPLICATE_SAME_ACCESS);
    DuplicateHandle(self, GetStdHandle(STD_OUTPUT_HANDLE), self, &replies, 0, FALSE, DUPLICATE_SAME_ACCESS);
    _dup2(2, 1);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    SetUnhandledExceptionFilter(ended);
    SetConsoleCtrlHandler(NULL, TRUE); /* an interruption at the keyboard is for the host */
    InitializeCriticalSection(&logging);

    unit u = {0};
    HMODULE library = NULL;
    fmi2Component instance = NULL;
    void (*functions[FUNCTIONS])(void) = {0};
    for (uint64_t length; read_all(&length, sizeof length);) {
        u.in.used = u.in.read = u.out.used = 0;
        if (length > u.in.room) {
            u.in.bytes = realloc(u.in.bytes, u.in.room = length);
            if (!u.in.bytes) abort();
        }
        if (!read_all(u.in.bytes, length)) break;
        u.in.used = length;
        for (block *each; (each = u.blocks);) {
            u.blocks = each->next;
            free(each);
        }
        uint32_t number;
        unpack_value(&u, &number, sizeof number);
        if (number == INSTANTIATE) {
            instance = instantiate(&u, &library);
            for (int i = 0; instance && i < FUNCTIONS; ++i)
                functions[i] = (void (*)(void))GetProcAddress(library, NAMES[i]);
            reply(&u, instance ? fmi2OK : fmi2Fatal);
        } else if (number == FREE_INSTANCE) {
            void (*function)(fmi2Component) = (void (*)(fmi2Component))(void (*)(void))GetProcAddress(
                library, "fmi2FreeInstance");
            if (function) function(instance);
            reply(&u, fmi2OK);
            break;
        } else if (number < FUNCTIONS && functions[number]) {
            reply(&u, answer(&u, (int)number, functions[number], instance));
        } else {
            char text[128];
            const char *name = number < FUNCTIONS ? NAMES[number] : "that was asked for";
            snprintf(text, sizeof text, "its library for Windows has no function %s", name);
            log_text(fmi2Error, "error", text);
            reply(&u, fmi2Error);
        }
    }
    ExitProcess(0); /* threads of the FMU end with it */
}
