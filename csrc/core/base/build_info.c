#include "base/build_info.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/ledger.h"

#ifndef CPB_BUILD_FLAGS
#    define CPB_BUILD_FLAGS ""
#endif

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

#if defined(__clang__)
#    define COMPILER "clang " __clang_version__
#else
#    define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#    define ARCH "x86_64"
#elif defined(__aarch64__)
#    define ARCH "aarch64"
#else
#    define ARCH "other"
#endif

const cpb_build_fact *
cpb_build_facts(void)
{
    static const cpb_build_fact facts[] = {
        {"compiler", COMPILER},
        {"flags", CPB_BUILD_FLAGS},
        {"arch", ARCH},
        {"libc_built_with", "glibc " STRINGIFY(__GLIBC__) "." STRINGIFY(__GLIBC_MINOR__)},
        {"counting", CPB_LEDGER ? "yes" : "no"},
        {NULL, NULL},
    };
    return facts;
}

typedef struct id_search {
    uintptr_t address; /* inside the object that is looked for */
    char *hex;
    size_t size;
} id_search;

static void
note_to_hex(const unsigned char *id, size_t length, char *hex, size_t size)
{
    size_t room = (size - 1) / 2;
    if (length > room)
        length = room;
    for (size_t i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
}

static void
read_notes(const char *at, size_t left, const id_search *search)
{
    while (left >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, at, sizeof head);
        size_t name_size = (head.n_namesz + 3u) & ~3u;
        size_t data_size = (head.n_descsz + 3u) & ~3u;
        if (sizeof head + name_size + data_size > left)
            return;
        const char *name = at + sizeof head;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
            note_to_hex((const unsigned char *)name + name_size, head.n_descsz, search->hex, search->size);
        at += sizeof head + name_size + data_size;
        left -= sizeof head + name_size + data_size;
    }
}

static int
visit_object(struct dl_phdr_info *info, size_t info_size, void *argument)
{
    (void)info_size;
    const id_search *search = argument;
    int mine = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && search->address - start < segment->p_memsz)
            mine = 1;
    }
    if (!mine)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE)
            read_notes((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz, search);
    }
    return 1;
}

void
cpb_build_id(char *hex, size_t size)
{
    id_search search = {.address = (uintptr_t)&cpb_build_facts, .hex = hex, .size = size};
    hex[0] = '\0';
    dl_iterate_phdr(visit_object, &search);
}

void
cpb_libc_version(char *text, size_t size)
{
    snprintf(text, size, "glibc %s", gnu_get_libc_version());
}
