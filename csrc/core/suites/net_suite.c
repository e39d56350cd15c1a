#include "suites/net_suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

static const net_contender contenders[] = {
    {"callback-epoll", NET_CALLBACK, CPB_REACTOR_EPOLL}, {"task-epoll", NET_TASK, CPB_REACTOR_EPOLL},
    {"callback-uring", NET_CALLBACK, CPB_REACTOR_URING}, {"task-uring", NET_TASK, CPB_REACTOR_URING},
    {"callback-poll", NET_CALLBACK, CPB_REACTOR_POLL},   {"raw-epoll", NET_RAW, CPB_REACTOR_EPOLL},
    {"raw-uring", NET_RAW, CPB_REACTOR_URING},
};

const net_contender *
net_contender_of(const cpb_case *cell)
{
    const net_contender *found = contenders;
    while (strcmp(found->name, cell->contender) != 0)
        found++;
    return found;
}

const char *
net_unavailable_uring(void)
{
    return cpb_reactor_unavailable(CPB_REACTOR_URING);
}

bool
net_is(const cpb_case *cell, const char *prefix)
{
    return strncmp(cell->name, prefix, strlen(prefix)) == 0;
}

bool
net_is_lockless(const cpb_case *cell)
{
    return strstr(cell->name, "_lockless") != NULL;
}

unsigned
net_argument(const cpb_case *cell, unsigned otherwise)
{
    const char *slash = strrchr(cell->name, '/');
    return slash != NULL ? (unsigned)strtoul(slash + 1, NULL, 10) : otherwise;
}

int
net_socket_flags(const net_base *base)
{
    return base->contender->reactor == CPB_REACTOR_URING ? 0 : SOCK_NONBLOCK;
}

/* The other run threads: they wait for a go, run the context, and say that they are back. */
struct net_runners {
    pthread_mutex_t mutex;
    pthread_cond_t go, back;
    unsigned round, running;
    bool end;
    int status;
    pthread_t thread[];
};

static void *
run_thread(void *argument)
{
    net_base *base = argument;
    net_runners *self = base->runners;
    unsigned seen = 0;
    pthread_mutex_lock(&self->mutex);
    for (;;) {
        while (self->round == seen && !self->end)
            pthread_cond_wait(&self->go, &self->mutex);
        if (self->end)
            break;
        seen = self->round;
        pthread_mutex_unlock(&self->mutex);
        if (base->theirs != NULL)
            base->theirs(base);
        int status = cpb_reactor_run(base->reactor);
        pthread_mutex_lock(&self->mutex);
        if (status != CPB_OK)
            self->status = status;
        if (--self->running == 0)
            pthread_cond_signal(&self->back);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static void
stop_threads(net_base *base, unsigned started)
{
    net_runners *self = base->runners;
    pthread_mutex_lock(&self->mutex);
    self->end = true;
    pthread_cond_broadcast(&self->go);
    pthread_mutex_unlock(&self->mutex);
    for (unsigned i = 0; i < started; i++)
        pthread_join(self->thread[i], NULL);
    pthread_cond_destroy(&self->back);
    pthread_cond_destroy(&self->go);
    pthread_mutex_destroy(&self->mutex);
    free(base->runners);
    base->runners = NULL;
}

static int
start_threads(net_base *base)
{
    unsigned others = base->threads - 1;
    base->runners = calloc(1, sizeof *base->runners + others * sizeof(pthread_t));
    if (base->runners == NULL)
        return CPB_E_NO_MEMORY;
    net_runners *self = base->runners;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->go, NULL);
    pthread_cond_init(&self->back, NULL);
    for (unsigned i = 0; i < others; i++) {
        if (pthread_create(&self->thread[i], NULL, run_thread, base) != 0) {
            stop_threads(base, i);
            return CPB_E_SYSTEM;
        }
        CPB_COUNT(CPB_THREADS_STARTED);
    }
    return CPB_OK;
}

/* Runs the context on all threads. */
static int
run_loop(net_base *base, void (*mine)(net_base *), void (*theirs)(net_base *))
{
    cpb_reactor_restart(base->reactor);
    if (base->runners == NULL) {
        if (mine != NULL)
            mine(base);
        return cpb_reactor_run(base->reactor);
    }
    base->theirs = theirs;
    if (mine != NULL)
        cpb_reactor_hold(base->reactor);
    net_runners *self = base->runners;
    pthread_mutex_lock(&self->mutex);
    self->running = base->threads - 1;
    self->round++;
    pthread_cond_broadcast(&self->go);
    pthread_mutex_unlock(&self->mutex);
    if (mine != NULL) {
        mine(base);
        cpb_reactor_release(base->reactor);
    }
    int status = cpb_reactor_run(base->reactor);
    pthread_mutex_lock(&self->mutex);
    while (self->running > 0)
        pthread_cond_wait(&self->back, &self->mutex);
    if (status == CPB_OK)
        status = self->status;
    pthread_mutex_unlock(&self->mutex);
    return status;
}

int
net_run(net_base *base)
{
    return net_run_with(base, NULL, NULL);
}

int
net_run_with(net_base *base, void (*mine)(net_base *), void (*theirs)(net_base *))
{
    int status = run_loop(base, mine, theirs);
    if (status != CPB_OK)
        return base->run->host->fail(base->run, status, "the loop's poll failed: %s", strerror(errno));
    status = atomic_load(&base->status);
    return status == CPB_OK ? CPB_OK : base->run->host->fail(base->run, status, "no memory for a coroutine frame");
}

static int
open_pairs(net_base *base, bool local)
{
    cpb_run *run = base->run;
    for (unsigned i = 0; i < base->pair_count; i++) {
        net_pair *pair = &base->pairs[i];
        int status = cpb_pair_open(run, &pair->fds, local, net_socket_flags(base));
        if (status != CPB_OK)
            return status;
        base->opened++;
        if (base->reactor == NULL)
            continue;
        if (cpb_socket_open(&pair->client, base->reactor, pair->fds.client) != CPB_OK ||
            cpb_socket_open(&pair->server, base->reactor, pair->fds.server) != CPB_OK)
            return run->host->fail(run, CPB_E_SYSTEM, "the reactor did not take a socket: %s", strerror(errno));
    }
    if (base->opened > 0)
        cpb_socket_note(run, base->pairs[0].fds.client);
    return CPB_OK;
}

static int
open_all(net_base *base, unsigned threads, bool local)
{
    cpb_run *run = base->run;
    if (cpb_parked_thread_start(&base->parked) != CPB_OK)
        return run->host->fail(run, CPB_E_SYSTEM, "the parked thread could not be started");
    base->is_parked = true;
    base->pairs = calloc(base->pair_count > 0 ? base->pair_count : 1, sizeof *base->pairs);
    if (base->pairs == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the pairs");
    int status = cpb_need_descriptors(run, 2 * base->pair_count + 4);
    if (status != CPB_OK)
        return status;
    if (base->contender->style != NET_RAW) {
        status = cpb_reactor_create(&base->reactor, base->contender->reactor, base->lockless, threads);
        if (status != CPB_OK)
            return run->host->fail(run, status, "the context could not be made: %s", strerror(errno));
    }
    base->threads = threads;
    if (threads > 1 && (status = start_threads(base)) != CPB_OK)
        return run->host->fail(run, status, "a run thread could not be started");
    return open_pairs(base, local);
}

int
net_open(net_base *base, cpb_run *run, bool lockless, unsigned threads, unsigned pairs, bool local)
{
    base->run = run;
    base->contender = net_contender_of(run->cell);
    base->lockless = lockless;
    base->pair_count = pairs;
    base->env.allocator = cpb_recycling_resource();
    base->env.stop = &base->stop;
    int status = open_all(base, threads, local);
    if (status != CPB_OK)
        net_close(base);
    return status;
}

void
net_close(net_base *base)
{
    for (unsigned i = 0; i < base->opened; i++) {
        net_pair *pair = &base->pairs[i];
        /* A socket that the context took closes its descriptor with it. */
        if (pair->client.reactor != NULL && pair->client.fd >= 0)
            pair->fds.client = -1;
        if (pair->server.reactor != NULL && pair->server.fd >= 0)
            pair->fds.server = -1;
        cpb_socket_close(&pair->client);
        cpb_socket_close(&pair->server);
        cpb_pair_close(&pair->fds);
    }
    if (base->reactor != NULL && base->opened > 0)
        (void)run_loop(base, NULL, NULL);
    if (base->runners != NULL)
        stop_threads(base, base->threads - 1);
    cpb_reactor_destroy(base->reactor);
    free(base->pairs);
    if (base->is_parked)
        cpb_parked_thread_stop(&base->parked);
    memset(base, 0, sizeof *base);
    cpb_recycling_drain();
}

cpb_task *
net_task(net_base *base, size_t size, cpb_frame *(*resume)(cpb_frame *), void (*destroy)(cpb_frame *))
{
    cpb_frame_allocator = base->env.allocator;
    cpb_task *task = cpb_frame_alloc(size);
    if (CPB_UNLIKELY(task == NULL)) {
        atomic_store(&base->status, CPB_E_NO_MEMORY);
        return NULL;
    }
    cpb_task_init(task, resume, destroy);
    task->env = &base->env;
    return task;
}
