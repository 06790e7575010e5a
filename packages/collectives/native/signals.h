// What ranks send each other apart from their calls: that a group has failed and whom that rank lost, and, asked for
// it, that they are there. It is read without waiting for it.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"
#include "mesh.h"

namespace roofline {

// How a peer was lost, in an alarm and in the text of a failure.
enum Loss : char { kNone = 0, kGone = 1, kLate = 2 };

constexpr uint8_t kAlarmSlot = 0x28, kProbeSlot = 0x29, kQuestionSlot = 0x2a, kAnswerSlot = 0x2b;

// One message of each kind from each peer, and one to all of them, in the life of a group.
class Signals {
 public:
  explicit Signals(const std::shared_ptr<Mesh>& mesh)
      : mesh_(mesh), alarms_(mesh, kAlarmSlot, mesh->size + 1), questions_(mesh, kQuestionSlot, 1),
        answers_(mesh, kAnswerSlot, 1), answered_(mesh->size, 0) {}

  // Once the mesh is connected.
  void begin() {
    alarms_.expect();
    questions_.expect();
    answers_.expect();
  }

  void raiseAlarm(const std::vector<char>& losses) {
    std::copy(losses.begin(), losses.end(), alarms_.out.begin());
    alarms_.tellAll();
  }

  bool isAlarmedBy(int peer) const { return alarms_.hasCome(peer); }

  bool isAlarmed() const {
    for (int peer = 0; peer < mesh_->size; peer++)
      if (isAlarmedBy(peer)) return true;
    return false;
  }

  // How the rank that raised an alarm lost each rank.
  const char* lossesOf(int peer) const { return alarms_.from(peer); }

  void ask() { questions_.tellAll(); }

  // To those who have asked since.
  void answer() {
    for (int peer = 0; peer < mesh_->size; peer++)
      if (questions_.hasCome(peer) && !answered_[peer]) {
        answered_[peer] = 1;
        answers_.tell(peer);
      }
  }

  bool isThere(int peer) const {
    return answers_.hasCome(peer) || questions_.hasCome(peer) || isAlarmedBy(peer);
  }

  // Whether a connection is broken: each has an alarm to bring.
  bool isAnyBroken() const { return static_cast<WatchedBuffer&>(*alarms_.receiver).hasBroken(); }

  // Whether the connection to a peer is still up on this side.
  bool isConnected(int peer) const {
    char byte = 0;
    try {
      mesh_->createUnboundBuffer(&byte, 1)->send(peer, gloo::Slot::build(kProbeSlot, 0), 0, 1);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  // Its last byte, which arrives last, says that it has come.
  struct Message {
    Message(const std::shared_ptr<Mesh>& owner, uint8_t slotPrefix, size_t byteLength)
        : out(byteLength, 0), mesh(owner), slot(gloo::Slot::build(slotPrefix, 0)), bytes(byteLength),
          in(owner->size * byteLength, 0) {
      out.back() = 1;
    }

    void expect() {
      receiver = mesh->createUnboundBuffer(in.data(), in.size());
      sender = mesh->createUnboundBuffer(out.data(), out.size());
      for (int peer = 0; peer < mesh->size; peer++)
        if (peer != mesh->rank) receiver->recv(peer, slot, peer * bytes, bytes);
    }

    const char* from(int peer) const { return &in[peer * bytes]; }

    // Written by Gloo's thread.
    bool hasCome(int peer) const { return static_cast<const volatile char&>(in[(peer + 1) * bytes - 1]) != 0; }

    void tell(int peer) {
      try {
        sender->send(peer, slot);
      } catch (const std::exception&) {
        // Its connection is broken; it needs no news.
      }
    }

    void tellAll() {
      for (int peer = 0; peer < mesh->size; peer++)
        if (peer != mesh->rank) tell(peer);
    }

    std::vector<char> out;
    const std::shared_ptr<Mesh> mesh;
    const gloo::Slot slot;
    const size_t bytes;
    std::vector<char> in;
    std::unique_ptr<gloo::transport::UnboundBuffer> receiver, sender;
  };

  const std::shared_ptr<Mesh> mesh_;
  Message alarms_, questions_, answers_;
  std::vector<char> answered_;
};

}  // namespace roofline
