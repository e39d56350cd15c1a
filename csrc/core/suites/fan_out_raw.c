/* Fan-out without a runtime: ends are stepped through in order, the last arrival of a round starts the next one. */
#include "suites/fan_out.h"

int
fan_prepare_raw(fan_state *state)
{
    int status = net_raw_open(&state->base, &state->kernel);
    for (unsigned i = 0; status == CPB_OK && i < state->base.pair_count; i++) {
        status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.server, 2 * i);
        if (status == CPB_OK)
            status = net_raw_watch(&state->base, &state->kernel, state->base.pairs[i].fds.client, 2 * i + 1);
    }
    return status;
}

NET_TEMPLATE void
set_step(net_raw *raw, bool sends, void *data, size_t size)
{
    raw->sends = sends;
    raw->waits = raw->ended = false;
    raw->data = data;
    raw->size = size;
}

static void
begin_subs(fan_join *join)
{
    join->left = join->count;
    for (unsigned i = 0; i < join->count; i++) {
        fan_sub *sub = fan_sub_at(join->state, join->first + i);
        sub->join = join;
        sub->sending = true;
        set_step(&sub->raw, true, sub->buffer, FAN_BYTES);
    }
}

/* False: no round is left for this parent. */
static bool
begin_round(fan_join *parent)
{
    fan_state *state = parent->state;
    if (!fan_claim(parent)) {
        state->active--;
        return false;
    }
    for (unsigned i = 0; state->groups != NULL && i < parent->count; i++)
        begin_subs(&state->groups[parent->first + i]);
    if (state->groups == NULL)
        begin_subs(parent);
    return true;
}

/* True when the arrival began a round, of which the arriving sub-request is a part again. */
static bool
arrive(fan_join *join)
{
    if (!fan_arrive(join))
        return false;
    if (join->above != NULL)
        return arrive(join->above);
    join->state->rounds++;
    return begin_round(join);
}

NET_TEMPLATE bool
go_on(net_raw *raw, int64_t bytes)
{
    raw->data = (char *)raw->data + bytes;
    raw->size -= (size_t)bytes;
    return raw->size > 0;
}

NET_TEMPLATE bool
echo_moved(fan_echo *self, int64_t bytes)
{
    if (!self->sending) {
        self->sending = true;
        set_step(&self->raw, true, self->buffer, (size_t)bytes);
    } else if (!go_on(&self->raw, bytes)) {
        self->sending = false;
        set_step(&self->raw, false, self->buffer, FAN_BYTES);
    }
    return true;
}

NET_TEMPLATE bool
sub_moved(fan_sub *self, int64_t bytes)
{
    if (go_on(&self->raw, bytes))
        return true;
    if (self->sending) {
        self->sending = false;
        set_step(&self->raw, false, self->buffer, FAN_BYTES);
        return true;
    }
    self->state->subs++;
    return arrive(self->join);
}

NET_TEMPLATE bool
moved(void *actor, int64_t bytes)
{
    fan_end *self = actor;
    fan_state *state = self->sub.state;
    if (CPB_UNLIKELY(bytes <= 0)) {
        state->failed++;
        state->active = 0;
        return false;
    }
    return (self - state->ends) % 2 == 0 ? echo_moved(&self->echo, bytes) : sub_moved(&self->sub, bytes);
}

int
fan_perform_raw(fan_state *state)
{
    unsigned count = 2 * state->base.pair_count;
    for (unsigned i = 0; i < count; i += 2) {
        fan_echo *echo = fan_echo_at(state, i / 2);
        fan_sub *sub = fan_sub_at(state, i / 2);
        echo->raw.fd = echo->pair->fds.server;
        sub->raw.fd = sub->pair->fds.client;
        sub->raw.ended = true;
        if (!echo->raw.waits) /* an echo that waits from the run before still waits */
            set_step(&echo->raw, false, echo->buffer, FAN_BYTES);
    }
    for (unsigned i = 0; i < state->parent_count; i++)
        begin_round(&state->parents[i]);
    if (state->kernel.has_ring)
        return net_raw_uring(&state->kernel.ring, state->ends, sizeof *state->ends, count, &state->active, moved);
    return net_raw_epoll(state->kernel.epoll, state->ends, sizeof *state->ends, count, 1, &state->active, moved);
}
