#include "base/thread.h"

static void *
park(void *argument)
{
    cpb_parked_thread *parked = argument;
    pthread_mutex_lock(&parked->mutex);
    while (!parked->end)
        pthread_cond_wait(&parked->wake, &parked->mutex);
    pthread_mutex_unlock(&parked->mutex);
    return NULL;
}

int
cpb_parked_thread_start(cpb_parked_thread *parked)
{
    parked->end = false;
    pthread_mutex_init(&parked->mutex, NULL);
    pthread_cond_init(&parked->wake, NULL);
    if (pthread_create(&parked->thread, NULL, park, parked) == 0)
        return CPB_OK;
    pthread_cond_destroy(&parked->wake);
    pthread_mutex_destroy(&parked->mutex);
    return CPB_E_SYSTEM;
}

void
cpb_parked_thread_stop(cpb_parked_thread *parked)
{
    pthread_mutex_lock(&parked->mutex);
    parked->end = true;
    pthread_cond_signal(&parked->wake);
    pthread_mutex_unlock(&parked->mutex);
    pthread_join(parked->thread, NULL);
    pthread_cond_destroy(&parked->wake);
    pthread_mutex_destroy(&parked->mutex);
}
