#include "base/status.h"

const char *
cpb_status_text(int status)
{
    switch (status) {
#define CPB_STATUS_CASE(name, value, text)                                                                             \
    case name:                                                                                                         \
        return text;
        CPB_STATUS_LIST(CPB_STATUS_CASE)
#undef CPB_STATUS_CASE
    default:
        return "unknown status";
    }
}

const char *
cpb_status_name(int status)
{
    switch (status) {
    case CPB_OK:
        return "ok";
    case CPB_E_NO_MEMORY:
        return "no_memory";
    case CPB_E_SYSTEM:
        return "system";
    case CPB_E_UNAVAILABLE:
        return "unavailable";
    case CPB_E_INVALID:
        return "invalid";
    case CPB_E_NOT_FOUND:
        return "not_found";
    case CPB_E_ARGUMENT:
        return "argument";
    case CPB_E_ABI:
        return "abi";
    default:
        return "failed";
    }
}
