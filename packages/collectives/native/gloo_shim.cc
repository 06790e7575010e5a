// A C interface over Gloo (https://github.com/facebookincubator/gloo): no C++ type or exception crosses it.
//
// A group is a full mesh of connections between ranks. JavaScript exchanges the addresses, through the rendezvous
// store; each call becomes a job, which a thread of its own runs in the order of calls ("lane"): one lane for the
// collectives, one for each peer and direction of send and receive. Nothing runs on libuv's threads. A finished job
// writes a byte to a socket that Node's event loop reads; a caller may also block until it is done.
//
// Before a job moves data, its ranks exchange descriptors (fixed-size texts): Gloo aborts the process where sizes
// differ. A rank that fails reports to the others which rank it lost ("alarm") before it drops its connections, so that
// all name the same peer.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "group.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

using roofline::Group;
using roofline::Job;
using roofline::Kind;

thread_local std::string lastError;

template <typename F> auto guarded(F f, decltype(f()) otherwise) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& error) {
    lastError = error.what();
    return otherwise;
  }
}

}  // namespace

// Why the last call of this thread that returned null or -1 did so.
API int roofline_gloo_last_error(char* text, int capacity) {
  const size_t length = std::min<size_t>(lastError.size(), capacity - 1);
  memcpy(text, lastError.data(), length);
  text[length] = 0;
  return static_cast<int>(length);
}

API void* roofline_gloo_open(int rank, int size, const char* host, const char* interfaceName, int timeoutMs) {
  return guarded([&]() -> void* { return new Group(rank, size, host, interfaceName, timeoutMs); }, nullptr);
}

// The bytes of this rank's addresses, one for each peer in the order of ranks; -1 if they do not fit.
API int roofline_gloo_addresses(void* group, char* out, int capacity) {
  const auto all = static_cast<Group*>(group)->addresses();
  if (static_cast<int>(all.size()) > capacity) return -1;
  std::copy(all.begin(), all.end(), out);
  return static_cast<int>(all.size());
}

// How many kinds of calls there are: where JavaScript knows of more or fewer, their numbers mean others.
API int roofline_gloo_kinds() { return roofline::kConnect + 1; }

// Readable whenever jobs have finished.
API int roofline_gloo_notified(void* group) { return static_cast<Group*>(group)->notified(); }

API int64_t roofline_gloo_start(void* group, int kind, int dtype, int reduction, int root, void* in, void* out,
                                int64_t count, const char* descriptor, int descriptorBytes) {
  return guarded([&]() -> int64_t {
    auto job = std::make_shared<Job>();
    job->kind = static_cast<Kind>(kind);
    job->dtype = dtype;
    job->reduction = reduction;
    job->root = root;
    job->in = static_cast<char*>(in);
    job->out = static_cast<char*>(out);
    job->count = static_cast<size_t>(count);
    job->descriptor.assign(descriptor, descriptor + descriptorBytes);
    return static_cast<Group*>(group)->start(job);
  }, -1);
}

API int roofline_gloo_wait(void* group, int64_t ticket) {
  return guarded([&] { static_cast<Group*>(group)->wait(ticket); return 0; }, -1);
}

API int roofline_gloo_finish(void* group, int64_t ticket, int64_t* ranNs, char* text, int capacity) {
  return guarded([&] { return static_cast<Group*>(group)->finish(ticket, ranNs, text, capacity); }, -1);
}

// Fails what is under way, ends the threads and the connections.
API void roofline_gloo_close(void* group) { delete static_cast<Group*>(group); }
