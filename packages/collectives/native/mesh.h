// The connections of a group: one to each other rank.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gloo/context.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/tcp/device.h"
#include "waits.h"

namespace roofline {

// Gloo's own time limit is a backstop: the watchdog comes first and names who is late.
constexpr milliseconds kBackstop{5000};

// SCHED_BATCH for this thread and those that it starts, as long as this lives.
class BatchPolicy {
 public:
  BatchPolicy() {
    isChanged_ = pthread_getschedparam(pthread_self(), &policy_, &parameters_) == 0 && policy_ == SCHED_OTHER &&
                 pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters_) == 0;
  }
  ~BatchPolicy() {
    if (isChanged_) pthread_setschedparam(pthread_self(), policy_, &parameters_);
  }

 private:
  int policy_ = SCHED_OTHER;
  sched_param parameters_{};
  bool isChanged_ = false;
};

// What gloo::rendezvous::Context does, in two steps: the store between them is asked by JavaScript.
class Mesh : public gloo::Context {
 public:
  Mesh(int rank, int size, const std::string& host, const std::string& interfaceName, milliseconds timeout)
      : gloo::Context(rank, size) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    attributes.iface = interfaceName;
    setTimeout(timeout + kBackstop);
    device_ = createDevice(attributes);
    const auto transport = device_->createContext(rank, size);
    transport->setTimeout(timeout + kBackstop);
    transportContext_ = std::make_shared<WatchedTransport>(transport, waits_);
    for (int peer = 0; peer < size; peer++) {
      if (peer == rank) continue;
      auto& pair = transportContext_->createPair(peer);
      pair->setLocalRank(rank);
      addresses_[peer] = pair->address().bytes();
    }
  }

  // Where each peer finds this rank, one after the other, in the order of ranks; none for itself.
  std::vector<char> addresses() const {
    std::vector<char> all;
    for (auto& entry : addresses_) all.insert(all.end(), entry.second.begin(), entry.second.end());
    return all;
  }

  // `remote` holds where this rank finds each peer, in the same form.
  void connect(const std::vector<char>& remote) {
    if (size < 2) return;
    const size_t bytes = remote.size() / (size - 1);
    size_t start = 0;
    for (int peer = 0; peer < size; peer++) {
      if (peer == rank) continue;
      auto first = remote.begin() + start;
      transportContext_->getPair(peer)->connect(std::vector<char>(first, first + bytes));
      start += bytes;
    }
  }

  // Makes every wait throw at once: one that times out closes all connections, and there is no other public way.
  void wakeWaiters() {
    try {
      char byte = 0;
      createUnboundBuffer(&byte, 1)->waitRecv(nullptr, milliseconds(1));
    } catch (const std::exception&) {
    }
    waits_->giveUp();
  }

  // Makes waits throw that no message can end, since its connection broke in the middle of it.
  void endStuckWaits(const std::function<bool(int)>& isConnected) { waits_->endStuck(isConnected); }

 private:
  // Gloo's loop thread spins on the lock of a connection for as long as another thread has it. If a message wakes it on
  // the processor of the thread that is just sending, it takes that one's place and spins until the next tick, 4 ms.
  // Threads of SCHED_BATCH, which it inherits, preempt no other thread when they wake.
  static std::shared_ptr<gloo::transport::Device> createDevice(const gloo::transport::tcp::attr& attributes) {
    const BatchPolicy inherited;
    return gloo::transport::tcp::CreateDevice(attributes);
  }

  const std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
  std::map<int, std::vector<char>> addresses_;
};

}  // namespace roofline
