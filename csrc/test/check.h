/* check.h: checks that are always on and print both values. A test program exits with 0, 1 or 77 (skipped).
 *
 * A program begins with CHECK_BEGIN() and ends with `return CHECK_END();`, which also compares the open descriptors. */
#ifndef CPB_TEST_CHECK_H
#define CPB_TEST_CHECK_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_SKIP 77

static int check_failures;
static int check_descriptors_at_start;

static inline int
check_count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: false: %s\n", __FILE__, __LINE__, #condition);                                     \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(left, right)                                                                                          \
    do {                                                                                                               \
        long long check_left = (long long)(left), check_right = (long long)(right);                                    \
        if (check_left != check_right) {                                                                               \
            fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #left, check_left, #right,          \
                    check_right);                                                                                      \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

#define CHECK_STR(left, right)                                                                                         \
    do {                                                                                                               \
        const char *check_left = (left), *check_right = (right);                                                       \
        if (strcmp(check_left, check_right) != 0) {                                                                    \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #left, check_left, check_right);  \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

#define CHECK_BEGIN() (check_descriptors_at_start = check_count_descriptors())

static inline int
check_end(void)
{
    CHECK_EQ(check_count_descriptors(), check_descriptors_at_start);
    return check_failures == 0 ? 0 : 1;
}
#define CHECK_END() check_end()

#endif
