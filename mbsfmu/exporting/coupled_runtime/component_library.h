/* The library of a component, and its functions by their names: loaded from the resources of the FMU, or linked with it
 * where a platform loads no libraries. */
#ifndef MBSFMU_COMPONENT_LIBRARY_H
#define MBSFMU_COMPONENT_LIBRARY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(LINKED_COMPONENTS)
#include "linked_components.h"
#define SEPARATOR '/'
#elif defined(_WIN32)
#include <windows.h>
#define SEPARATOR '\\'
#else
#include <dlfcn.h>
#define SEPARATOR '/'
#endif

typedef void (*Function)(void);
enum { LONGEST_PATH = 4096 };

#if defined(LINKED_COMPONENTS)
/* Find a library by the folder of its component; on failure `reason` says why. */
static void *load_library(const char *folder, char *reason, size_t room)
{
    for (const struct LinkedLibrary *each = linked_libraries; each->folder; each++)
        if (strcmp(each->folder, folder) == 0)
            return (void *)each->functions;
    snprintf(reason, room, "it is not linked");
    return NULL;
}

static void unload_library(void *library) { (void)library; }

/* Return a function of a library; NULL where it has none of the name. */
static Function function_of(void *library, const char *name)
{
    for (const struct LinkedFunction *each = library; each->name; each++)
        if (strcmp(each->name, name) == 0)
            return each->function;
    return NULL;
}
#else
/* Load a library of a path in UTF-8; on failure `reason` says why. */
static void *load_library(const char *path, char *reason, size_t room)
{
#ifdef _WIN32
    wchar_t wide[LONGEST_PATH];
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, LONGEST_PATH)) {
        snprintf(reason, room, "the path is too long");
        return NULL;
    }
    void *library = LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    if (!library)
        snprintf(reason, room, "Windows gives error %lu", GetLastError());
    return library;
#else
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *said = dlerror();
        snprintf(reason, room, "%s", said ? said : "no reason given");
    }
    return library;
#endif
}

static void unload_library(void *library)
{
#ifdef _WIN32
    FreeLibrary(library);
#else
    dlclose(library);
#endif
}

/* Return a function of a library; NULL where it has none of the name. */
static Function function_of(void *library, const char *name)
{
    Function function = NULL;
#ifdef _WIN32
    FARPROC found = GetProcAddress(library, name);
#else
    void *found = dlsym(library, name);
#endif
    memcpy(&function, &found, sizeof function); /* C99 has no conversion between both kinds of pointers */
    return function;
}
#endif

static int hexadecimal(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Write the path that an importer means by a path or a URI, without a separator at its end; returns 0 on failure. */
static int decode_path(const char *given, char *path, size_t room)
{
    size_t count = 0;
    int is_uri = strncmp(given, "file:", 5) == 0;
    const char *from = is_uri ? given + 5 : given;
    if (is_uri && strncmp(from, "//", 2) == 0) {
        from += 2;
        if (strncmp(from, "localhost/", 10) == 0)
            from += 9;
    }
#ifdef _WIN32
    if (is_uri && from[0] == '/' && from[1] && from[2] == ':')
        from++;
#endif
    for (; *from; from++) {
        if (count + 1 >= room)
            return 0;
        int high = is_uri && *from == '%' ? hexadecimal(from[1]) : -1, low = high < 0 ? -1 : hexadecimal(from[2]);
        path[count++] = low < 0 ? *from : (char)(16 * high + low);
        from += low < 0 ? 0 : 2;
    }
    while (count > 1 && (path[count - 1] == '/' || path[count - 1] == SEPARATOR))
        count--;
    path[count] = '\0';
    return count > 0;
}

/* Write a path as a URI: all but letters, digits and some signs as hexadecimal bytes; returns 0 where it is too long. */
static int encode_uri(const char *path, char *uri, size_t room)
{
    size_t count = (size_t)snprintf(uri, room, "file://%s", path[0] == '/' ? "" : "/");
    for (; *path; path++) {
        if (count + 4 >= room)
            return 0;
        char sign = *path == '\\' ? '/' : *path;
        int is_plain = (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9');
        if (is_plain || strchr("/-._~:", sign))
            uri[count++] = sign;
        else
            count += (size_t)snprintf(uri + count, room - count, "%%%02X", (unsigned)(unsigned char)sign);
    }
    uri[count] = '\0';
    return 1;
}

#endif
