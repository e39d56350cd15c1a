/* read_stream_parts.h: what the files of suite `read_stream` share: the state of a run and the entry of each consumer.
 */
#ifndef CPB_SUITES_READ_STREAM_PARTS_H
#define CPB_SUITES_READ_STREAM_PARTS_H

#include <pthread.h>

#include "rt/task.h"
#include "stream/sender.h"

#define CPB_SESSION_READS 10000u
#define CPB_READ_BYTES 64u

/* One run: streams, pool, and what the consumers count. The counts are plain: reads are sequenced by the pool. */
typedef struct cpb_reader {
    cpb_pool pool;
    cpb_awaitable_streams awaitables;
    cpb_sender_streams senders;
    cpb_any_scheduler scheduler;
    cpb_adapter adapter;
    cpb_stop_token stop;
    uint64_t reads;  /* completed */
    uint64_t errors; /* of them with a code, with bytes, or without memory */
    uint64_t sessions;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool done;
} cpb_reader;

/* Counts one completed read and tests what it answered. */
CPB_TEMPLATE void
cpb_reader_count(cpb_reader *reader, uint64_t code, size_t bytes)
{
    reader->reads++;
    if (CPB_UNLIKELY(code != 0 || bytes != 0))
        reader->errors++;
}

/* Tells the waiting main thread that a run is over. */
void cpb_reader_finish(cpb_reader *reader);

/* Ramps of a session, a coroutine of 10,000 reads; and starters of a pipeline of `reads` reads on the calling worker.
 */
typedef cpb_task *(*cpb_session_ramp)(cpb_reader *reader);
typedef void (*cpb_pipeline_start)(cpb_reader *reader, uint64_t reads);

/* Indexed by stream kind. */
extern const cpb_session_ramp cpb_task_awaitable[4];
extern const cpb_session_ramp cpb_task_sender_stdexec[4], cpb_task_sender_beman[4];
extern const cpb_session_ramp cpb_plain_sender_stdexec[4], cpb_plain_awaitable_stdexec[4];
extern const cpb_session_ramp cpb_affine_sender_stdexec[4], cpb_affine_awaitable_stdexec[4];
extern const cpb_session_ramp cpb_shortcut_sender_beman[4], cpb_shortcut_awaitable_beman[4];
extern const cpb_session_ramp cpb_plain_sender_beman[4], cpb_plain_awaitable_beman[4];
extern const cpb_session_ramp cpb_named_sender_beman[4], cpb_named_awaitable_beman[4];
extern const cpb_session_ramp cpb_affine_sender_beman[4], cpb_affine_awaitable_beman[4];
extern const cpb_pipeline_start cpb_pipeline_sender_stdexec[4], cpb_pipeline_awaitable_stdexec[4];
extern const cpb_pipeline_start cpb_pipeline_sender_beman[4], cpb_pipeline_awaitable_beman[4];

#endif
