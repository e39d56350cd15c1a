#include "alloc/foreign.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct library_names {
    const char *const *names; /* tried in order; ends with NULL */
    const char *missing;
    const char *no_tls;
} library_names;

static const char *const mimalloc_names[] = {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0",
                                             "libmimalloc.so", NULL};
static const char *const jemalloc_names[] = {"libjemalloc.so.2", "libjemalloc.so", NULL};

static const library_names libraries[] = {
    [CPB_FOREIGN_MIMALLOC] =
        {mimalloc_names,
         "libmimalloc was not found; install it with pip install 'capybench[mimalloc]' or, on Debian, apt install "
         "libmimalloc2.0",
         "libmimalloc does not fit the spare static TLS block; start with "
         "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096"},
    [CPB_FOREIGN_JEMALLOC] = {jemalloc_names,
                              "libjemalloc.so.2 was not found; install it, on Debian with apt install libjemalloc2",
                              "libjemalloc does not fit the spare static TLS block; start with "
                              "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096"},
};

static void *
open_in_folders(const char *name)
{
    const char *folders = getenv(CPB_LIBRARY_PATH_VARIABLE);
    while (folders != NULL && *folders != '\0') {
        const char *end = strchrnul(folders, ':');
        char path[4096];
        int length = snprintf(path, sizeof path, "%.*s/%s", (int)(end - folders), folders, name);
        if (length > 0 && (size_t)length < sizeof path) {
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
            if (library != NULL)
                return library;
        }
        folders = *end == ':' ? end + 1 : end;
    }
    return NULL;
}

/* Opens the first library that loads; on failure says why. */
static void *
open_library(cpb_foreign_kind kind, const char **reason)
{
    const library_names *wanted = &libraries[kind];
    int no_tls = 0;
    for (const char *const *name = wanted->names; *name != NULL; name++) {
        void *library = open_in_folders(*name);
        if (library == NULL)
            library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library != NULL)
            return library;
        const char *error = dlerror();
        if (error != NULL && strstr(error, "static TLS") != NULL)
            no_tls = 1;
    }
    *reason = no_tls ? wanted->no_tls : wanted->missing;
    return NULL;
}

const char *
cpb_foreign_unavailable(cpb_foreign_kind kind)
{
    const char *reason = NULL;
    void *library = open_library(kind, &reason);
    if (library != NULL)
        dlclose(library);
    return reason;
}

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises that dlsym's result has the
 * bits. */
static int
find(void *library, const char *name, void *function_pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(function_pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void *
mimalloc_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    return ((cpb_foreign *)(void *)self)->mimalloc_alloc(size, alignment);
}

static void
mimalloc_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)size;
    ((cpb_foreign *)(void *)self)->mimalloc_free(memory, alignment);
}

/* Flags 0: jemalloc aligns every size of 16 bytes and more to 16. */
static void *
jemalloc_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    (void)alignment;
    return ((cpb_foreign *)(void *)self)->jemalloc_alloc(size, 0);
}

static void
jemalloc_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)alignment;
    ((cpb_foreign *)(void *)self)->jemalloc_free(memory, size, 0);
}

static const cpb_resource_table mimalloc_table = {mimalloc_allocate, mimalloc_deallocate};
static const cpb_resource_table jemalloc_table = {jemalloc_allocate, jemalloc_deallocate};

/* Up to 3.3 mimalloc numbers its versions with one digit a part (209 is 2.0.9), later with two (30401 is 3.4.1). */
static void
mimalloc_version(cpb_foreign *foreign)
{
    int (*version)(void);
    if (!find(foreign->library, "mi_version", &version)) {
        snprintf(foreign->version, sizeof foreign->version, "mimalloc, version unknown");
        return;
    }
    int number = version();
    int base = number >= 10000 ? 100 : 10;
    snprintf(foreign->version, sizeof foreign->version, "mimalloc %d.%d.%d", number / (base * base),
             number / base % base, number % base);
}

static void
jemalloc_version(cpb_foreign *foreign)
{
    int (*control)(const char *, void *, size_t *, void *, size_t);
    const char *text = NULL;
    size_t size = sizeof text;
    if (!find(foreign->library, "mallctl", &control) || control("version", &text, &size, NULL, 0) != 0)
        text = "version unknown";
    snprintf(foreign->version, sizeof foreign->version, "jemalloc %.40s", text);
}

int
cpb_foreign_open(cpb_foreign *foreign, cpb_foreign_kind kind)
{
    const char *reason = NULL;
    memset(foreign, 0, sizeof *foreign);
    foreign->library = open_library(kind, &reason);
    if (foreign->library == NULL)
        return CPB_E_UNAVAILABLE;
    void *entry;
    int complete;
    if (kind == CPB_FOREIGN_MIMALLOC) {
        foreign->resource.table = &mimalloc_table;
        complete = find(foreign->library, "mi_malloc_aligned", &foreign->mimalloc_alloc) &&
                   find(foreign->library, "mi_free_aligned", &foreign->mimalloc_free);
        entry = dlsym(foreign->library, "mi_malloc_aligned");
        mimalloc_version(foreign);
    } else {
        foreign->resource.table = &jemalloc_table;
        complete = find(foreign->library, "mallocx", &foreign->jemalloc_alloc) &&
                   find(foreign->library, "sdallocx", &foreign->jemalloc_free);
        entry = dlsym(foreign->library, "mallocx");
        jemalloc_version(foreign);
    }
    Dl_info info;
    if (entry != NULL && dladdr(entry, &info) != 0 && info.dli_fname != NULL)
        snprintf(foreign->path, sizeof foreign->path, "%s", info.dli_fname);
    return complete ? CPB_OK : CPB_E_UNAVAILABLE;
}

void
cpb_foreign_close(cpb_foreign *foreign)
{
    if (foreign->library != NULL)
        dlclose(foreign->library);
    foreign->library = NULL;
}
