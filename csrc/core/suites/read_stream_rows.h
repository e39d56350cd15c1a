/* read_stream_rows.h: the rows of suite `read_stream`, four stream kinds each, with what a read of each kind must cost.
 */
#ifndef CPB_SUITES_READ_STREAM_ROWS_H
#define CPB_SUITES_READ_STREAM_ROWS_H

/* clang-format off */
#define CPB_READ_STREAM_ROWS(X) \
    X("stdexec", "awaitable", "task", "Capy's task on its own stream, mutex pool", CPB_QUICK, 1, LAUNCH_ON_POOL, CPB_POOL_MUTEX, 1, cpb_task_awaitable, NULL, \
      L(0, 0, 2, 0, 0, 2, 1), L(0, 0, 3, 0, 0, 2, 1), L(0, 0, 7, 0, 0, 2, 1), L(0, 0, 1, 0, 0, 0, 0)) \
    X("stdexec", "awaitable", "pipeline", "sender pipeline over an awaitable, two workers", 0, 2, PIPELINE, CPB_POOL_STEAL, 2, NULL, cpb_pipeline_awaitable_stdexec, \
      L(1, 0, 5, 1, 0, 0, 1), L(1, 0, 6, 1, 0, 0, 1), L(1, 0, 10, 1, 0, 0, 1), L(0, 0, 2, 0, 0, 0, 0)) \
    X("stdexec", "awaitable", "pipeline_1worker", "the same with one worker", 0, 1, PIPELINE, CPB_POOL_STEAL, 1, NULL, cpb_pipeline_awaitable_stdexec, \
      L(1, 0, 5, 1, 0, 0, 1), L(1, 0, 6, 1, 0, 0, 1), L(1, 0, 10, 1, 0, 0, 1), L(0, 0, 2, 0, 0, 0, 0)) \
    X("stdexec", "awaitable", "sender_task", "the senders' task over an awaitable, with affinity", 0, 1, START_ON_POOL, CPB_POOL_STEAL, 1, cpb_affine_awaitable_stdexec, NULL, \
      L(2, 0, 12, 3, 2, 0, 2), L(2, 0, 13, 3, 2, 0, 2), L(2, 0, 17, 3, 2, 0, 2), L(1, 0, 9, 2, 2, 0, 1)) \
    X("stdexec", "awaitable", "sender_task_noaffinity", "the same without affinity", 0, 1, START_ON_POOL, CPB_POOL_STEAL, 1, cpb_plain_awaitable_stdexec, NULL, \
      L(1, 0, 4, 2, 0, 0, 1), L(1, 0, 5, 2, 0, 0, 1), L(1, 0, 9, 2, 0, 0, 1), L(0, 0, 1, 1, 0, 0, 0)) \
    X("stdexec", "sender", "task", "Capy's task over a sender, through its bridge", CPB_QUICK, 1, LAUNCH_HERE, CPB_POOL_STEAL, 1, cpb_task_sender_stdexec, NULL, \
      L(0, 0, 2, 2, 0, 0, 1), L(2, 0, 8, 4, 0, 0, 1), L(2, 0, 9, 4, 0, 0, 1), L(0, 0, 1, 2, 0, 0, 0)) \
    X("stdexec", "sender", "pipeline", "sender pipeline on its own stream, two workers", CPB_QUICK, 2, PIPELINE, CPB_POOL_STEAL, 2, NULL, cpb_pipeline_sender_stdexec, \
      L(0, 0, 3, 0, 0, 0, 1), L(2, 0, 9, 2, 0, 0, 1), L(2, 0, 10, 2, 0, 0, 1), L(0, 0, 2, 0, 0, 0, 0)) \
    X("stdexec", "sender", "pipeline_1worker", "the same with one worker", 0, 1, PIPELINE, CPB_POOL_STEAL, 1, NULL, cpb_pipeline_sender_stdexec, \
      L(0, 0, 3, 0, 0, 0, 1), L(2, 0, 9, 2, 0, 0, 1), L(2, 0, 10, 2, 0, 0, 1), L(0, 0, 2, 0, 0, 0, 0)) \
    X("stdexec", "sender", "sender_task", "the senders' task on its own stream, with affinity", CPB_QUICK, 1, START_ON_POOL, CPB_POOL_STEAL, 1, cpb_affine_sender_stdexec, NULL, \
      L(1, 0, 10, 2, 2, 0, 2), L(3, 0, 16, 4, 2, 0, 2), L(3, 0, 17, 4, 2, 0, 2), L(0, 0, 0, 0, 0, 0, 0)) \
    X("stdexec", "sender", "sender_task_noaffinity", "the same without affinity", CPB_QUICK, 1, START_ON_POOL, CPB_POOL_STEAL, 1, cpb_plain_sender_stdexec, NULL, \
      L(0, 0, 2, 1, 0, 0, 1), L(2, 0, 8, 3, 0, 0, 1), L(2, 0, 9, 3, 0, 0, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "awaitable", "task", "Capy's task on its own stream, mutex pool", 0, 1, LAUNCH_ON_POOL, CPB_POOL_MUTEX, 1, cpb_task_awaitable, NULL, \
      L(0, 0, 2, 0, 0, 2, 1), L(0, 0, 3, 0, 0, 2, 1), L(0, 0, 7, 0, 0, 2, 1), L(0, 0, 1, 0, 0, 0, 0)) \
    X("beman", "awaitable", "pipeline", "sender pipeline over an awaitable", 0, 1, PIPELINE, CPB_POOL_MUTEX, 1, NULL, cpb_pipeline_awaitable_beman, \
      L(1, 0, 3, 1, 0, 2, 1), L(1, 0, 4, 1, 0, 2, 1), L(1, 0, 8, 1, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "awaitable", "sender_task", "the senders' task over an awaitable, by as_awaitable", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_shortcut_awaitable_beman, NULL, \
      L(1, 0, 3, 1, 0, 2, 1), L(1, 0, 4, 1, 0, 2, 1), L(1, 0, 8, 1, 0, 2, 1), L(0, 0, 1, 0, 0, 0, 0)) \
    X("beman", "awaitable", "sender_task_connect", "the same by connect and start", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_plain_awaitable_beman, NULL, \
      L(1, 0, 4, 3, 0, 2, 1), L(1, 0, 5, 3, 0, 2, 1), L(1, 0, 9, 3, 0, 2, 1), L(0, 0, 1, 2, 0, 0, 0)) \
    X("beman", "awaitable", "sender_task_affine", "connect, with affinity to a named scheduler", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_named_awaitable_beman, NULL, \
      L(1, 0, 5, 3, 0, 4, 2), L(1, 0, 6, 3, 0, 4, 2), L(1, 0, 10, 3, 0, 4, 2), L(0, 0, 2, 2, 0, 2, 1)) \
    X("beman", "awaitable", "sender_task_affine_erased", "connect, with affinity to an erased scheduler", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_affine_awaitable_beman, NULL, \
      L(2, 0, 12, 4, 2, 4, 2), L(2, 0, 13, 4, 2, 4, 2), L(2, 0, 17, 4, 2, 4, 2), L(1, 0, 9, 3, 2, 2, 1)) \
    X("beman", "sender", "task", "Capy's task over a sender, through its bridge", 0, 1, LAUNCH_HERE, CPB_POOL_MUTEX, 1, cpb_task_sender_beman, NULL, \
      L(0, 0, 2, 2, 0, 2, 1), L(0, 1, 11, 3, 0, 2, 1), L(0, 1, 12, 3, 0, 2, 1), L(0, 0, 1, 2, 0, 0, 0)) \
    X("beman", "sender", "pipeline", "sender pipeline on its own stream", 0, 1, PIPELINE, CPB_POOL_MUTEX, 1, NULL, cpb_pipeline_sender_beman, \
      L(0, 0, 1, 0, 0, 2, 1), L(0, 1, 10, 1, 0, 2, 1), L(0, 1, 11, 1, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "sender", "sender_task", "the senders' task on its own stream, by as_awaitable", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_shortcut_sender_beman, NULL, \
      L(0, 0, 2, 0, 0, 2, 1), L(0, 1, 11, 1, 0, 2, 1), L(0, 1, 12, 1, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "sender", "sender_task_connect", "the same by connect and start", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_plain_sender_beman, NULL, \
      L(0, 0, 2, 2, 0, 2, 1), L(0, 1, 11, 3, 0, 2, 1), L(0, 1, 12, 3, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "sender", "sender_task_affine", "connect, with affinity to a named scheduler", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_named_sender_beman, NULL, \
      L(0, 0, 3, 2, 0, 4, 2), L(0, 1, 12, 3, 0, 4, 2), L(0, 1, 13, 3, 0, 4, 2), L(0, 0, 0, 0, 0, 0, 0)) \
    X("beman", "sender", "sender_task_affine_erased", "connect, with affinity to an erased scheduler", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_affine_sender_beman, NULL, \
      L(1, 0, 10, 3, 2, 4, 2), L(1, 1, 19, 4, 2, 4, 2), L(1, 1, 20, 4, 2, 4, 2), L(0, 0, 0, 0, 0, 0, 0)) \
    X("common", "awaitable", "task", "Capy's task on its own stream", 0, 1, LAUNCH_ON_POOL, CPB_POOL_MUTEX, 1, cpb_task_awaitable, NULL, \
      L(0, 0, 2, 0, 0, 2, 1), L(0, 0, 3, 0, 0, 2, 1), L(0, 0, 7, 0, 0, 2, 1), L(0, 0, 1, 0, 0, 0, 0)) \
    X("common", "awaitable", "pipeline", "sender pipeline over an awaitable", 0, 1, PIPELINE, CPB_POOL_MUTEX, 1, NULL, cpb_pipeline_awaitable_beman, \
      L(1, 0, 3, 1, 0, 2, 1), L(1, 0, 4, 1, 0, 2, 1), L(1, 0, 8, 1, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("common", "awaitable", "sender_task", "the senders' task over an awaitable, by connect and start", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_plain_awaitable_beman, NULL, \
      L(1, 0, 4, 3, 0, 2, 1), L(1, 0, 5, 3, 0, 2, 1), L(1, 0, 9, 3, 0, 2, 1), L(0, 0, 1, 2, 0, 0, 0)) \
    X("common", "sender", "task", "Capy's task over a sender, through its bridge", 0, 1, LAUNCH_HERE, CPB_POOL_MUTEX, 1, cpb_task_sender_beman, NULL, \
      L(0, 0, 2, 2, 0, 2, 1), L(0, 1, 11, 3, 0, 2, 1), L(0, 1, 12, 3, 0, 2, 1), L(0, 0, 1, 2, 0, 0, 0)) \
    X("common", "sender", "pipeline", "sender pipeline on its own stream", 0, 1, PIPELINE, CPB_POOL_MUTEX, 1, NULL, cpb_pipeline_sender_beman, \
      L(0, 0, 1, 0, 0, 2, 1), L(0, 1, 10, 1, 0, 2, 1), L(0, 1, 11, 1, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0)) \
    X("common", "sender", "sender_task", "the senders' task on its own stream, by connect and start", 0, 1, START_ON_POOL, CPB_POOL_MUTEX, 1, cpb_plain_sender_beman, NULL, \
      L(0, 0, 2, 2, 0, 2, 1), L(0, 1, 11, 3, 0, 2, 1), L(0, 1, 12, 3, 0, 2, 1), L(0, 0, 0, 0, 0, 0, 0))
/* clang-format on */

#endif
