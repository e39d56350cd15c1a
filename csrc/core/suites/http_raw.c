/* HTTP clients and servers without a runtime. */
#include "suites/http_server.h"

int
http_prepare_raw(http_state *state)
{
    int status = net_raw_open(&state->base, &state->kernel);
    for (unsigned i = 0; status == CPB_OK && i < 2 * state->base.pair_count; i++)
        status = net_raw_watch(&state->base, &state->kernel, state->actors[i].fd, i);
    return status;
}

NET_TEMPLATE void
begin_send(http_actor *self)
{
    self->sending = self->raw.sends = true;
    self->raw.data = (void *)(uintptr_t)(self->is_client ? http_request : http_response);
    self->raw.size = self->is_client ? HTTP_REQUEST_BYTES : HTTP_RESPONSE_BYTES;
}

NET_TEMPLATE bool
begin_receive(http_actor *self)
{
    self->sending = self->raw.sends = false;
    self->raw.data = http_room(&self->text, &self->raw.size);
    return self->raw.data != NULL;
}

NET_TEMPLATE bool
end(http_actor *self, bool failed)
{
    self->state->failed += failed;
    self->state->running -= self->is_client;
    return false;
}

NET_TEMPLATE bool
moved(void *actor, int64_t bytes)
{
    http_actor *self = actor;
    if (CPB_UNLIKELY(bytes <= 0))
        return end(self, true);
    if (self->sending) {
        if (CPB_UNLIKELY((size_t)bytes < self->raw.size)) {
            self->raw.data = (char *)self->raw.data + bytes;
            self->raw.size -= (size_t)bytes;
            return true;
        }
        return begin_receive(self) || end(self, true);
    }
    size_t length;
    if (CPB_UNLIKELY(!http_take(self, (size_t)bytes, &length)))
        return begin_receive(self) || end(self, true);
    http_erase(&self->text, length);
    if (self->is_client) {
        self->ops++;
        if (!http_claim(self->state))
            return end(self, false);
    }
    begin_send(self);
    return true;
}

int
http_perform_raw(http_state *state)
{
    unsigned count = 2 * state->base.pair_count;
    state->running = 0;
    for (unsigned i = 0; i < count; i++) {
        http_actor *self = &state->actors[i];
        self->raw.fd = self->fd;
        if (!self->is_client) {
            /* A server that waits from the run before still waits. */
            if (!self->raw.waits && !begin_receive(self))
                return CPB_E_NO_MEMORY;
            continue;
        }
        self->raw.waits = false;
        self->raw.ended = !http_claim(state);
        state->running += !self->raw.ended;
        begin_send(self);
    }
    if (state->kernel.has_ring)
        return net_raw_uring(&state->kernel.ring, state->actors, sizeof *state->actors, count, &state->running, moved);
    return net_raw_epoll(state->kernel.epoll, state->actors, sizeof *state->actors, count, 1, &state->running, moved);
}
