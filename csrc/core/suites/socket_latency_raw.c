/* Ping-pong without a runtime. */
#include "suites/socket_latency.h"

enum { SEND_OUT, RECEIVE_OUT, SEND_BACK, RECEIVE_BACK, STEPS };

int
latency_prepare_raw(latency_state *state)
{
    int status = net_raw_open(&state->base, &state->kernel);
    for (unsigned i = 0; status == CPB_OK && i < state->base.pair_count; i++) {
        status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.client, i);
        if (status == CPB_OK)
            status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.server, i);
    }
    return status;
}

/* Sets up the whole of the present step. */
NET_TEMPLATE void
begin_step(latency_actor *self)
{
    bool at_client = self->step == SEND_OUT || self->step == RECEIVE_BACK;
    self->raw.fd = at_client ? self->pair->fds.client : self->pair->fds.server;
    self->raw.sends = self->step == SEND_OUT || self->step == SEND_BACK;
    self->raw.data = self->step == SEND_OUT ? self->out : self->step == RECEIVE_BACK ? self->back : self->in;
    self->raw.size = self->state->message;
}

NET_TEMPLATE bool
moved(void *actor, int64_t bytes)
{
    latency_actor *self = actor;
    if (CPB_UNLIKELY(bytes <= 0)) {
        self->state->failed++;
        self->state->running--;
        return false;
    }
    if (CPB_UNLIKELY((size_t)bytes < self->raw.size)) {
        self->raw.data = (char *)self->raw.data + bytes;
        self->raw.size -= (size_t)bytes;
        return true;
    }
    if (self->step == RECEIVE_BACK)
        latency_record(self);
    self->step = (self->step + 1) % STEPS;
    if (self->step == SEND_OUT && !latency_claim(self)) {
        self->state->running--;
        return false;
    }
    begin_step(self);
    return true;
}

int
latency_perform_raw(latency_state *state)
{
    unsigned count = state->base.pair_count;
    state->running = 0;
    for (unsigned i = 0; i < count; i++) {
        latency_actor *self = &state->actors[i];
        self->step = SEND_OUT;
        self->raw.waits = false;
        self->raw.ended = !latency_claim(self);
        begin_step(self);
        state->running += !self->raw.ended;
    }
    if (state->kernel.has_ring)
        return net_raw_uring(&state->kernel.ring, state->actors, sizeof *state->actors, count, &state->running, moved);
    return net_raw_epoll(state->kernel.epoll, state->actors, sizeof *state->actors, count, 1, &state->running, moved);
}
