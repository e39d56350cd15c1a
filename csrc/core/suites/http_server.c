/* Suite `http_server` (network specification 2.3): requests and responses over persistent connections. One op is one
 * request that was answered. Servers live as long as the run; the last client to end stops the loop from within. */
#include "suites/http_server.h"

#include <stdlib.h>
#include <string.h>

#define MULTITHREAD_PAIRS 32u
#define READ_AT_LEAST 512u
#define BLANK_LINE "\r\n\r\n"
#define LENGTH_FIELD "Content-Length: "

const char http_request[HTTP_REQUEST_BYTES + 1] =
    "GET /api/data HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0" BLANK_LINE;
const char http_response[HTTP_RESPONSE_BYTES + 1] = "HTTP/1.1 200 OK\r\nContent-Length: 13" BLANK_LINE "Hello, World!";

void *
http_room(http_string *text, size_t *size)
{
    if (CPB_UNLIKELY(text->capacity - text->size < READ_AT_LEAST)) {
        size_t capacity = text->capacity == 0 ? 2 * READ_AT_LEAST : 2 * text->capacity;
        char *data = realloc(text->data, capacity);
        if (data == NULL)
            return NULL;
        text->data = data;
        text->capacity = capacity;
    }
    *size = text->capacity - text->size;
    return text->data + text->size;
}

void
http_erase(http_string *text, size_t length)
{
    text->size -= length;
    if (text->size > 0)
        memmove(text->data, text->data + length, text->size);
}

/* The body's length by the header's field; a header without one has no body. */
static size_t
content_length(const char *header, size_t size)
{
    const char *field = memmem(header, size, LENGTH_FIELD, sizeof LENGTH_FIELD - 1);
    size_t length = 0;
    if (field == NULL)
        return 0;
    for (const char *digit = field + sizeof LENGTH_FIELD - 1; digit < header + size && *digit >= '0' && *digit <= '9';
         digit++)
        length = 10 * length + (size_t)(*digit - '0');
    return length;
}

bool
http_take(http_actor *actor, size_t moved, size_t *length)
{
    http_string *text = &actor->text;
    text->size += moved;
    const char *end = memmem(text->data, text->size, BLANK_LINE, sizeof BLANK_LINE - 1);
    if (CPB_UNLIKELY(end == NULL))
        return false;
    *length = (size_t)(end - text->data) + sizeof BLANK_LINE - 1;
    if (actor->is_client)
        *length += content_length(text->data, *length);
    return *length <= text->size;
}

static int
perform(http_state *state, uint64_t ops)
{
    net_base *base = &state->base;
    unsigned count = 2 * base->pair_count;
    atomic_store(&state->left, (int64_t)ops);
    atomic_store(&state->active, base->pair_count);
    for (unsigned i = 0; i < count; i++)
        state->actors[i].ops = 0;
    int status;
    if (base->contender->style == NET_RAW) {
        status = http_perform_raw(state);
        if (status != CPB_OK)
            return base->run->host->fail(base->run, status, "the raw loop ended with an error");
    } else {
        for (unsigned i = 0; i < count; i++) {
            if (!state->actors[i].is_client)
                continue;
            if (base->contender->style == NET_TASK)
                http_start_task(&state->actors[i]);
            else
                http_start_callback(&state->actors[i]);
        }
        status = net_run(base);
    }
    for (unsigned i = 1; i < count; i += 2)
        state->answered += state->actors[i].ops;
    state->expected += ops;
    return status;
}

/* Servers wait for their first request before anything is timed. */
static void
start_servers(http_state *state)
{
    for (unsigned i = 0; i < 2 * state->base.pair_count; i += 2) {
        if (state->base.contender->style == NET_TASK)
            http_start_task(&state->actors[i]);
        else if (state->base.contender->style == NET_CALLBACK)
            http_start_callback(&state->actors[i]);
    }
}

/* Before anything is timed: a request per connection, and the bytes that both sides got. What was consumed still lies
 * in the string. */
static int
prove_contents(cpb_run *run, http_state *state)
{
    unsigned pairs = state->base.pair_count;
    int status = perform(state, (uint64_t)pairs * (2 + CPB_INLINE_BUDGET));
    if (status != CPB_OK)
        return status;
    for (unsigned i = 0; i < pairs; i++) {
        const http_actor *server = &state->actors[2 * i], *client = &state->actors[2 * i + 1];
        if (client->ops == 0)
            continue; /* with several threads a connection may be late for its share */
        if (memcmp(server->text.data, http_request, HTTP_REQUEST_BYTES) != 0 ||
            memcmp(client->text.data, http_response, HTTP_RESPONSE_BYTES) != 0)
            return run->host->fail(run, CPB_E_FAILED, "other bytes arrived than were sent");
    }
    return CPB_OK;
}

static int
make_actors(http_state *state)
{
    net_base *base = &state->base;
    state->actors = calloc(2 * base->pair_count, sizeof *state->actors);
    if (state->actors == NULL)
        return base->run->host->fail(base->run, CPB_E_NO_MEMORY, "no memory for the actors");
    for (unsigned i = 0; i < 2 * base->pair_count; i++) {
        http_actor *actor = &state->actors[i];
        net_pair *pair = &base->pairs[i / 2];
        actor->state = state;
        actor->op.actor = &actor->actor;
        actor->is_client = i % 2 == 1;
        actor->socket = actor->is_client ? &pair->client : &pair->server;
        actor->fd = actor->is_client ? pair->fds.client : pair->fds.server;
    }
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    http_state *state = run->state;
    unsigned count = state->actors != NULL ? 2 * state->base.pair_count : 0;
    net_raw_close(&state->kernel);
    net_close(&state->base);
    for (unsigned i = 0; i < count; i++)
        free(state->actors[i].text.data);
    free(state->actors);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    http_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    unsigned argument = net_argument(run->cell, 1);
    bool multi = net_is(run->cell, "multithread");
    state->shared = multi && argument > 1;
    int status = net_open(&state->base, run, net_is_lockless(run->cell), multi ? argument : 1,
                          multi ? MULTITHREAD_PAIRS : argument, false);
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    status = make_actors(state);
    if (status == CPB_OK && state->base.contender->style == NET_RAW)
        status = http_prepare_raw(state);
    if (status == CPB_OK) {
        start_servers(state);
        status = prove_contents(run, state);
    }
    if (status != CPB_OK)
        teardown(run);
    return status;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    return perform(run->state, ops);
}

static int
verify(cpb_run *run)
{
    http_state *state = run->state;
    uint64_t failed = atomic_load(&state->failed);
    if (failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu connections ended with an error", (unsigned long long)failed);
    if (state->answered != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu requests were answered",
                               (unsigned long long)state->answered, (unsigned long long)state->expected);
    return CPB_OK;
}

static const cpb_ledger ledger = {{CPB_ANY, CPB_ANY, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define CELL(case_name, contender_name, text, cpu_count, quick, reason)                                                \
    {                                                                                                                  \
        .suite = "http_server", .name = case_name, .contender = contender_name, .summary = text, .unit = "ops/s",      \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .cpus = cpu_count,             \
        .ledger = &ledger, .unavailable = reason, .setup = setup, .run = run_ops, .verify = verify,                    \
        .teardown = teardown                                                                                           \
    }
#define RUNTIMES(name, cpus, quick)                                                                                    \
    CELL(name, "callback-epoll", "callbacks on epoll", cpus, quick, NULL),                                             \
        CELL(name, "task-epoll", "coroutines on epoll", cpus, quick, NULL),                                            \
        CELL(name, "callback-uring", "callbacks on io_uring", cpus, quick, net_unavailable_uring),                     \
        CELL(name, "task-uring", "coroutines on io_uring", cpus, quick, net_unavailable_uring),                        \
        CELL(name, "callback-poll", "callbacks on poll", cpus, quick, NULL)
#define WITH_RAW(name, quick)                                                                                          \
    RUNTIMES(name, 1, quick), CELL(name, "raw-epoll", "the same system calls without a runtime", 1, quick, NULL),      \
        CELL(name, "raw-uring", "the same submissions without a runtime", 1, quick, net_unavailable_uring)

static const cpb_case cells[] = {
    WITH_RAW("single_conn", CPB_QUICK), RUNTIMES("single_conn_lockless", 1, 0),  WITH_RAW("concurrent/1", 0),
    WITH_RAW("concurrent/4", 0),        WITH_RAW("concurrent/16", CPB_QUICK),    WITH_RAW("concurrent/32", 0),
    RUNTIMES("multithread/1", 1, 0),    RUNTIMES("multithread/2", 2, CPB_QUICK), RUNTIMES("multithread/4", 4, 0),
    RUNTIMES("multithread/8", 8, 0),    RUNTIMES("multithread/16", 16, 0),
};

const cpb_suite cpb_suite_http_server = {
    .name = "http_server",
    .summary = "requests and responses over persistent connections (Corosio http_server)",
    .baselines = NET_BASELINES,
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
