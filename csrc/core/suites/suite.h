/* suite.h: what every suite file shares. */
#ifndef CPB_SUITES_SUITE_H
#define CPB_SUITES_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capybench.h"

#define CPB_CELL_COUNT(cells) (sizeof(cells) / sizeof((cells)[0]))

#define X(name) extern const cpb_suite cpb_suite_##name;
#include "suites/suites.def"
#undef X

#endif
