/* Writers and readers without a runtime. */
#include "suites/net_raw.h"
#include "suites/socket_throughput.h"

static unsigned
actor_count(const throughput_state *state)
{
    return 2 * state->directions;
}

int
throughput_prepare_raw(throughput_state *state)
{
    int status = net_raw_open(&state->base, &state->kernel);
    /* Both directions of a pair look again at its events: their actors lie side by side. */
    unsigned per_pair = actor_count(state) / state->base.pair_count;
    for (unsigned i = 0; status == CPB_OK && i < state->base.pair_count; i++) {
        status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.client, i * per_pair);
        if (status == CPB_OK)
            status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.server, i * per_pair);
    }
    return status;
}

NET_TEMPLATE void
next_step(throughput_actor *self)
{
    size_t chunk = self->state->chunk;
    self->raw.size = self->left < chunk ? (size_t)self->left : chunk;
}

NET_TEMPLATE bool
moved(void *actor, int64_t bytes)
{
    throughput_actor *self = actor;
    if (throughput_account(self, bytes)) {
        next_step(self);
        return true;
    }
    self->state->running--;
    return false;
}

int
throughput_perform_raw(throughput_state *state)
{
    unsigned count = actor_count(state);
    state->running = 0;
    for (unsigned i = 0; i < count; i++) {
        throughput_actor *self = &state->actors[i];
        self->raw = (net_raw){.fd = self->fd, .sends = self->writes, .data = self->buffer, .ended = self->left == 0};
        next_step(self);
        state->running += self->left > 0;
    }
    if (state->kernel.has_ring)
        return net_raw_uring(&state->kernel.ring, state->actors, sizeof *state->actors, count, &state->running, moved);
    return net_raw_epoll(state->kernel.epoll, state->actors, sizeof *state->actors, count,
                         count / state->base.pair_count, &state->running, moved);
}
