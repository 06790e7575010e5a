// Who waits for messages, so that another thread can end it. Gloo itself notifies waiters that a connection is broken,
// or that all are given up, but not where their message is half through: they would wait until Gloo's own time is over.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gloo/transport/context.h"
#include "gloo/transport/unbound_buffer.h"

namespace roofline {

using std::chrono::milliseconds;

// The peers of messages that are not through. Of several that have come Gloo names only the last one, for each: where
// it is no longer known whose are left, none are named.
class Unfinished {
 public:
  void add(int peer) {
    const bool isNew = std::count(peers_.begin(), peers_.end(), peer) == 0;
    areKnown_ = areKnown_ && (isOfOne(peer) || (isNew && areApart() && !hasShrunk_));
    peers_.push_back(peer);
  }

  void remove(int peer) {
    const auto found = std::find(peers_.begin(), peers_.end(), peer);
    areKnown_ = areKnown_ && found != peers_.end();
    if (found != peers_.end()) peers_.erase(found);
    else if (!peers_.empty()) peers_.pop_back();
    hasShrunk_ = !peers_.empty();
    areKnown_ = areKnown_ || peers_.empty();
  }

  const std::vector<int>& peers() const {
    static const std::vector<int> none;
    return areKnown_ ? peers_ : none;
  }

 private:
  bool isOfOne(int peer) const {
    return std::all_of(peers_.begin(), peers_.end(), [&](int other) { return other == peer; });
  }

  // Whether no two are of one peer: of several of one and some of another it would not be known whose has come.
  bool areApart() const { return peers_.size() < 2 || peers_[0] != peers_[1]; }

  std::vector<int> peers_;
  bool areKnown_ = true;
  // Whether some, not all, have come.
  bool hasShrunk_ = false;
};

class Waits {
 public:
  // A wait for one of `messages`.
  class Entry {
   public:
    Entry(Waits& waits, gloo::transport::UnboundBuffer& buffer, bool isSend, const Unfinished& messages)
        : waits_(waits), buffer_(buffer), isSend_(isSend), messages_(messages) {
      std::lock_guard<std::mutex> lock(waits_.mutex_);
      place_ = waits_.entries_.insert(waits_.entries_.end(), this);
    }

    ~Entry() {
      std::lock_guard<std::mutex> lock(waits_.mutex_);
      waits_.entries_.erase(place_);
    }

    // Before each try; false where all waits have been given up.
    bool begin() {
      std::lock_guard<std::mutex> lock(waits_.mutex_);
      wasSeen_ = isEnded_ = false;
      return !waits_.areGivenUp_;
    }

    // Whether the try has been ended, which may have come too late for it. It is not ended after this.
    bool stop() {
      std::lock_guard<std::mutex> lock(waits_.mutex_);
      hasStopped_ = true;
      return isEnded_;
    }

   private:
    friend class Waits;
    void end() {
      if (hasStopped_) return;
      isEnded_ = true;
      if (isSend_) buffer_.abortWaitSend();
      else buffer_.abortWaitRecv();
    }

    Waits& waits_;
    gloo::transport::UnboundBuffer& buffer_;
    const bool isSend_;
    const Unfinished& messages_;
    std::list<Entry*>::iterator place_;
    bool wasSeen_ = false, isEnded_ = false, hasStopped_ = false;
  };

  // Ends all waits, and those to come.
  void giveUp() {
    std::lock_guard<std::mutex> lock(mutex_);
    areGivenUp_ = true;
    for (Entry* entry : entries_) entry->end();
  }

  // Ends those, begun before the last look, that are for a message of a peer whose connection is broken.
  void endStuck(const std::function<bool(int)>& isConnected) {
    std::vector<int> peers;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (Entry* entry : entries_) {
        const auto& own = entry->messages_.peers();
        if (entry->wasSeen_) peers.insert(peers.end(), own.begin(), own.end());
      }
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    peers.erase(std::remove_if(peers.begin(), peers.end(), isConnected), peers.end());
    std::lock_guard<std::mutex> lock(mutex_);
    const auto isBroken = [&](int peer) { return std::binary_search(peers.begin(), peers.end(), peer); };
    for (Entry* entry : entries_) {
      const auto& own = entry->messages_.peers();
      if (entry->wasSeen_ && std::any_of(own.begin(), own.end(), isBroken)) entry->end();
      entry->wasSeen_ = true;
    }
  }

 private:
  friend class WatchedBuffer;
  std::mutex mutex_;
  std::list<Entry*> entries_;
  bool areGivenUp_ = false;
};

// One of Gloo's, whose waits are noted.
class WatchedBuffer : public gloo::transport::UnboundBuffer {
 public:
  WatchedBuffer(std::unique_ptr<gloo::transport::UnboundBuffer> inner, const std::shared_ptr<Waits>& waits)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), waits_(waits) {}

  bool waitRecv(int* rank, milliseconds timeout) override {
    return wait(false, rank, timeout, [this](int* from, milliseconds most) { return inner_->waitRecv(from, most); });
  }

  bool waitSend(int* rank, milliseconds timeout) override {
    return wait(true, rank, timeout, [this](int* to, milliseconds most) { return inner_->waitSend(to, most); });
  }

  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int to, uint64_t slot, size_t offset, size_t bytes) override {
    note(sends_, to);
    inner_->send(to, slot, offset, bytes);
  }

  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override {
    note(receives_, from);
    inner_->recv(from, slot, offset, bytes);
  }

  void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override {
    inner_->recv(std::move(from), slot, offset, bytes);
  }

  // Whether the connection to a peer is broken from whom something was to come. For a buffer that nothing waits for:
  // this wait is ended before it begins.
  bool hasBroken() {
    inner_->abortWaitRecv();
    try {
      inner_->waitRecv();
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }

 private:
  template <typename WaitFor> bool wait(bool isSend, int* rank, milliseconds timeout, const WaitFor& waitFor) {
    Unfinished& messages = isSend ? sends_ : receives_;
    int peer = -1;
    bool hasCome = false;
    {
      Waits::Entry entry(*waits_, *inner_, isSend, messages);
      for (int tries = 0; !hasCome && entry.begin(); tries++) {
        // The first may have been ended though its message was through: this thread had not been notified yet.
        if (tries == 2) throw std::runtime_error("the connection broke in the middle of a message");
        hasCome = waitFor(&peer, timeout);
      }
      // What ended this wait must not end the next one.
      if (entry.stop() && hasCome) waitFor(nullptr, timeout);
    }
    // All is given up. What has come until then counts, and where nothing has, this throws.
    if (!hasCome) waitFor(&peer, milliseconds(0));
    std::lock_guard<std::mutex> lock(waits_->mutex_);
    messages.remove(peer);
    if (rank != nullptr) *rank = peer;
    return true;
  }

  void note(Unfinished& messages, int peer) {
    std::lock_guard<std::mutex> lock(waits_->mutex_);
    messages.add(peer);
  }

  const std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
  const std::shared_ptr<Waits> waits_;
  Unfinished sends_, receives_;
};

// One of Gloo's, whose buffers are watched.
class WatchedTransport : public gloo::transport::Context {
 public:
  WatchedTransport(const std::shared_ptr<gloo::transport::Context>& inner, const std::shared_ptr<Waits>& waits)
      : Context(inner->rank, inner->size), inner_(inner), waits_(waits) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return inner_->getPair(peer); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override { return inner_->createPair(peer); }

  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory, size_t bytes) override {
    return std::make_unique<WatchedBuffer>(inner_->createUnboundBuffer(memory, bytes), waits_);
  }

 private:
  const std::shared_ptr<gloo::transport::Context> inner_;
  const std::shared_ptr<Waits> waits_;
};

}  // namespace roofline
