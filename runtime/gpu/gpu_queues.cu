/* Streams and events of a plan: two streams for its phases, a third for tiles that must be double, and two for copies, on all of a device's multiprocessors or on some. They are the same for all plans of a
 * kind, so that points that move have those of the points before: making some fifty of them takes as long as making a tree's lists. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { MOST_EVENTS = 64 };

/* All events, those that tell the time last: returns how many, and of how many the order alone matters. */
int list_events(fmm_cuda_queues *q, cudaEvent_t *event[MOST_EVENTS], int *plain) {
  int n = 0;
  cudaEvent_t *const single[] = {&q->ready, &q->inspected, &q->tight_ready, &q->tight_done, &q->rest_done, &q->up_done, &q->check_sent, &q->far_done, &q->near_done};
  for (cudaEvent_t *one : single) event[n++] = one;
  for (cudaEvent_t &one : q->fetched) event[n++] = &one;
  for (cudaEvent_t &one : q->piece_sent) event[n++] = &one;
  *plain = n;
  event[n++] = &q->origin;
  for (auto &both : q->phase_event)
    for (cudaEvent_t &one : both) event[n++] = &one;
  for (auto &both : q->copy_event)
    for (cudaEvent_t &one : both) event[n++] = &one;
  return n;
}

fmm_status make_streams(fmm_cuda_queues *q) {
  int least = 0, greatest = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&q->sms, cudaDevAttrMultiProcessorCount, q->device));
  CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  if (q->sms_asked > 0 && q->sms_asked < q->sms) FMM_TRY(fmm_cuda_green_create(q->device, q->sms_asked, &q->green, &q->sms));
  for (int i = 0; i < FMM_CUDA_N_STREAMS; i++) {
    const int priority = q->favours_near && (i == FMM_CUDA_NEAR || i == FMM_CUDA_TIGHT) ? greatest : 0;
    if (q->green && i <= FMM_CUDA_TIGHT) FMM_TRY(fmm_cuda_green_stream(q->green, priority, &q->stream[i]));
    else CUDA_TRY(cudaStreamCreateWithPriority(&q->stream[i], cudaStreamNonBlocking, priority));
  }
  return FMM_OK;
}
}

fmm_status fmm_cuda_queues_make(fmm_cuda_queues *q, fmm_gpu_spare *spare, int device, int sms, int favours_near) {
  cudaEvent_t *event[MOST_EVENTS];
  int plain;
  q->device = device, q->sms_asked = sms, q->favours_near = favours_near;
  if (fmm_cuda_spare_take_queues(spare, q)) return FMM_OK;
  FMM_TRY(make_streams(q));
  const int n = list_events(q, event, &plain);
  for (int i = 0; i < n; i++) CUDA_TRY(cudaEventCreateWithFlags(event[i], i < plain ? cudaEventDisableTiming : cudaEventDefault));
  return FMM_OK;
}

void fmm_cuda_queues_wait(const fmm_cuda_queues *q) {
  for (cudaStream_t stream : q->stream)
    if (stream) cudaStreamSynchronize(stream);
  cudaGetLastError();
}

void fmm_cuda_queues_free(fmm_cuda_queues *q) {
  cudaEvent_t *event[MOST_EVENTS];
  int plain;
  for (cudaStream_t &stream : q->stream)
    if (stream) cudaStreamDestroy(stream), stream = NULL;
  fmm_cuda_green_destroy(q->green);
  q->green = NULL;
  for (int i = 0, n = list_events(q, event, &plain); i < n; i++)
    if (*event[i]) cudaEventDestroy(*event[i]), *event[i] = NULL;
  cudaGetLastError();
}
