// What ranks send each other before data moves, so that mismatched calls never reach Gloo.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"
#include "mesh.h"

namespace roofline {

constexpr size_t kDescriptorBytes = 256;
// Slot prefixes in addition to Gloo's own, which are below 0x10.
constexpr uint8_t kDescriptorSlot = 0x20, kSendDescriptorSlot = 0x21, kRecvDescriptorSlot = 0x22;

inline std::vector<char> padded(const std::vector<char>& descriptor) {
  std::vector<char> bytes(kDescriptorBytes, 0);
  std::copy_n(descriptor.begin(), std::min(descriptor.size(), kDescriptorBytes - 1), bytes.begin());
  return bytes;
}

// Of all ranks of a group, call after call. The peers' next descriptors are asked for ahead of time: they then come
// without a question first, which halves the delay. One buffer waits for all peers, so that any broken connection is
// noticed at once.
class Agreement {
 public:
  explicit Agreement(const std::shared_ptr<Mesh>& mesh) : mesh_(mesh) {
    for (auto& round : rounds_) {
      round.heard.assign(mesh->size * kDescriptorBytes, 0);
      round.receiver = mesh->createUnboundBuffer(round.heard.data(), round.heard.size());
    }
  }

  // Once the mesh is connected, and before the first call.
  void begin() { ask(0); }

  // Whether all ranks have come with the same descriptor.
  bool agree(const std::vector<char>& descriptor) {
    if (refused_) std::rethrow_exception(refused_);
    const int rank = mesh_->rank, size = mesh_->size;
    Round& round = rounds_[number_ % 2];
    const auto own = padded(descriptor);
    auto sender = mesh_->createUnboundBuffer(const_cast<char*>(own.data()), own.size());
    const auto slot = gloo::Slot::build(kDescriptorSlot, number_);
    for (int step = 1; step < size; step++) sender->send((rank + step) % size, slot, 0, kDescriptorBytes);
    for (int step = 1; step < size; step++) round.receiver->waitRecv();
    for (int step = 1; step < size; step++) sender->waitSend();
    std::copy(own.begin(), own.end(), round.heard.begin() + rank * kDescriptorBytes);
    askAhead();
    for (int peer = 0; peer < size; peer++)
      if (memcmp(&round.heard[peer * kDescriptorBytes], own.data(), kDescriptorBytes) != 0) return false;
    return true;
  }

  // What each rank said last, one after the other.
  std::string texts() const {
    const auto& heard = rounds_[(number_ + 1) % 2].heard;
    std::string all;
    for (size_t at = 0; at < heard.size(); at += kDescriptorBytes) all += std::string(&heard[at]) + "\n";
    return all;
  }

  // Whether a peer has come to the call that is being agreed on. Read by another thread, when the time is over.
  bool hasCome(int peer) const {
    return static_cast<const volatile char&>(rounds_[number_ % 2].heard[peer * kDescriptorBytes]) != 0;
  }

 private:
  struct Round {
    std::vector<char> heard;
    std::unique_ptr<gloo::transport::UnboundBuffer> receiver;
  };

  // A peer that has left since this call does not spoil it, but the next one.
  void askAhead() {
    try {
      ask(++number_);
    } catch (const std::exception&) {
      refused_ = std::current_exception();
    }
  }

  void ask(uint32_t number) {
    Round& round = rounds_[number % 2];
    std::fill(round.heard.begin(), round.heard.end(), 0);
    const auto slot = gloo::Slot::build(kDescriptorSlot, number);
    for (int peer = 0; peer < mesh_->size; peer++)
      if (peer != mesh_->rank) round.receiver->recv(peer, slot, peer * kDescriptorBytes, kDescriptorBytes);
  }

  std::shared_ptr<Mesh> mesh_;
  uint32_t number_ = 0;
  Round rounds_[2];
  std::exception_ptr refused_;
};

// Of the two sides of a send and receive. What the peer said goes to `heard`, which begins with 0 until it has.
inline bool agreePairwise(Mesh& mesh, int peer, bool sends, uint32_t tag, const std::vector<char>& descriptor,
                          std::vector<char>& heard) {
  auto own = padded(descriptor);
  auto receiver = mesh.createUnboundBuffer(heard.data(), kDescriptorBytes);
  auto sender = mesh.createUnboundBuffer(own.data(), kDescriptorBytes);
  receiver->recv(peer, gloo::Slot::build(sends ? kRecvDescriptorSlot : kSendDescriptorSlot, tag));
  sender->send(peer, gloo::Slot::build(sends ? kSendDescriptorSlot : kRecvDescriptorSlot, tag));
  receiver->waitRecv();
  sender->waitSend();
  return memcmp(heard.data(), own.data(), kDescriptorBytes) == 0;
}

}  // namespace roofline
