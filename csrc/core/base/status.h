/* status.h: texts of cpb_status, made from the same list as the enumeration. */
#ifndef CPB_BASE_STATUS_H
#define CPB_BASE_STATUS_H

#include "capybench.h"

/* A static sentence for a status, "unknown status" for any other number. Thread-safe. */
const char *cpb_status_text(int status);

/* A static one-word name such as "failed" for results and exceptions. Thread-safe. */
const char *cpb_status_name(int status);

#endif
