// A group: its threads, and what becomes of it when a rank is lost.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "agreement.h"
#include "collectives.h"
#include "job.h"
#include "mesh.h"
#include "signals.h"

namespace roofline {

using Clock = std::chrono::steady_clock;

// How much later than asked for a thread wakes up where its process was stopped.
constexpr milliseconds kStandstill{500};

// How often the watchdog looks at most, and where a connection is broken.
constexpr milliseconds kLookInterval{250}, kBrokenInterval{25};

// Jobs of one kind, which a thread runs one after the other.
struct Lane {
  std::deque<std::shared_ptr<Job>> queue;
  std::condition_variable filled;
  uint32_t tag = 0;
  std::thread thread;
};

class Group {
 public:
  Group(int rank, int size, const char* host, const char* interfaceName, int timeoutMs)
      : rank_(rank), size_(size), timeout_(timeoutMs),
        watchInterval_(std::min(std::max(timeout_ / 20, milliseconds(5)), milliseconds(1000))),
        mesh_(std::make_shared<Mesh>(rank, size, host, interfaceName, timeout_)), agreement_(mesh_),
        signals_(mesh_) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0)
      throw std::runtime_error(std::string("socketpair: ") + strerror(errno));
    notified_ = sockets[0];
    notify_ = sockets[1];
    watchdog_ = std::thread([this] { watch(); });
  }

  ~Group() {
    bool isIdle;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      isClosing_ = true;
      if (failure_.empty()) failure_ = "\nthe group was closed";
      isIdle = running_.empty();
      for (auto& lane : lanes_) lane.second.filled.notify_all();
      closing_.notify_all();
    }
    if (!isIdle) mesh_->wakeWaiters();
    for (auto& lane : lanes_) lane.second.thread.join();
    watchdog_.join();
    mesh_->closeConnections();
    close(notify_);  // The reading end is Node's.
  }

  std::vector<char> addresses() const { return mesh_->addresses(); }

  // Readable whenever jobs have finished.
  int notified() const { return notified_; }

  // Returns a ticket for `wait` and `finish`.
  int64_t start(const std::shared_ptr<Job>& job) {
    // Sends to a peer keep their order, and so do receives from it; they do not wait for anything else.
    const int key = job->kind == kSend ? 1 + job->root : job->kind == kRecv ? -1 - job->root : 0;
    if (job->isPairwise()) job->heard.assign(kDescriptorBytes, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t ticket = ++lastTicket_;
    jobs_[ticket] = job;
    Lane& lane = lanes_[key];
    lane.queue.push_back(job);
    if (!lane.thread.joinable()) lane.thread = std::thread([this, &lane] { runLane(lane); });
    // A thread that is woken while the lock is held would only wait for it.
    lock.unlock();
    lane.filled.notify_one();
    return ticket;
  }

  // Blocks until the job has finished.
  void wait(int64_t ticket) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto found = jobs_.find(ticket);
    if (found == jobs_.end()) throw std::invalid_argument("no such ticket");
    auto job = found->second;
    finished_.wait(lock, [&] { return job->state != kPending; });
  }

  // The state; of a finished job also its text and, in nanoseconds of the monotonic clock, when its data moved. The job is
  // then forgotten.
  int finish(int64_t ticket, int64_t* ranNs, char* text, size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = jobs_.find(ticket);
    if (found == jobs_.end()) throw std::invalid_argument("no such ticket");
    const Job& job = *found->second;
    const int state = job.state;
    if (state == kPending) return state;
    const size_t length = std::min(job.text.size(), capacity - 1);
    memcpy(text, job.text.data(), length);
    text[length] = 0;
    ranNs[0] = nanoseconds(job.began);
    ranNs[1] = nanoseconds(job.ended);
    jobs_.erase(found);
    return state;
  }

 private:
  static int64_t nanoseconds(Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }

  void runLane(Lane& lane) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      lane.filled.wait(lock, [&] { return isClosing_ || !lane.queue.empty(); });
      if (lane.queue.empty()) return;
      auto job = lane.queue.front();
      lane.queue.pop_front();
      std::string text;
      int state = kFailed;
      if (failure_.empty()) {
        job->deadline = Clock::now() + timeout_;
        running_.insert(job);
        const uint32_t tag = ++lane.tag;
        lock.unlock();
        state = run(*job, tag, text);
        lock.lock();
        running_.erase(job);
      }
      job->text = state == kFailed ? failure_ : text;
      job->descriptor.clear();
      job->state = state;
      lock.unlock();
      finished_.notify_all();
      tellNode();
      lock.lock();
    }
  }

  void tellNode() const {
    const char byte = 1;
    // A full socket has news for the reader already, and nothing reads while the group is closed.
    if (write(notify_, &byte, 1) < 0) return;
  }

  int run(Job& job, uint32_t tag, std::string& text) {
    try {
      return runChecked(job, tag, text);
    } catch (const std::exception& error) {
      fail(error.what(), nullptr);
      return kFailed;
    }
  }

  int runChecked(Job& job, uint32_t tag, std::string& text) {
    if (job.kind == kConnect) connect(job);
    if (size_ > 1) {
      const bool areAlike = job.isPairwise()
          ? agreePairwise(*mesh_, job.root, job.kind == kSend, tag, job.descriptor, job.heard)
          : agreement_.agree(job.descriptor);
      job.hasAgreed = true;
      if (!areAlike) {
        text = job.isPairwise() ? std::string(job.heard.data()) + "\n" : agreement_.texts();
        return kMismatch;
      }
    }
    job.began = Clock::now();
    move(job, tag);
    job.ended = Clock::now();
    return kDone;
  }

  void move(Job& job, uint32_t tag) {
    if (job.count == 0) return;
    if (size_ == 1) runAlone(job);
    else if (job.isPairwise()) movePairwise(mesh_, job, tag);
    else runCollective(mesh_, job, tag);
  }

  void connect(Job& job) {
    mesh_->connect(job.descriptor);
    job.descriptor.assign({'c'});
    if (size_ == 1) return;
    agreement_.begin();
    signals_.begin();
    isConnected_ = true;
  }

  // Fails jobs whose time is over, and says which ranks had not come; and those of a group that has failed elsewhere,
  // whose data may wait for a rank that lives. It looks now and then: being notified of each job would cost each job a
  // switch of threads.
  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    bool isAnyBroken = false;
    while (!isClosing_ && failure_.empty()) {
      const auto began = Clock::now();
      const auto interval = std::min(watchInterval_, isAnyBroken ? kBrokenInterval : kLookInterval);
      closing_.wait_for(lock, interval);
      if (isClosing_) return;
      // A process that stood still hears first whether the others have given it up meanwhile.
      if (Clock::now() - began > interval + kStandstill) continue;
      std::shared_ptr<Job> late;
      for (auto& job : running_)
        if (job->deadline < Clock::now()) late = job;
      const bool isIdle = running_.empty();
      lock.unlock();
      if (isConnected_) signals_.answer();
      if (!isIdle && isConnected_ && signals_.isAlarmed()) fail("the group has failed elsewhere", nullptr);
      else if (late) fail("timed out after " + std::to_string(timeout_.count()) + " ms", late.get());
      else isAnyBroken = !isIdle && isConnected_ && signals_.isAnyBroken();
      // A rank that has left harms those alone who wait for its messages.
      if (isAnyBroken) mesh_->endStuckWaits([this](int peer) { return signals_.isConnected(peer); });
      lock.lock();
    }
  }

  // The group's first failure, reported to the peers: later jobs fail with it at once.
  void fail(const std::string& message, const Job* late) {
    std::lock_guard<std::mutex> failing(failing_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_.empty()) return;
    }
    std::vector<char> losses(size_, kNone);
    if (late) noteLate(*late, losses);
    else noteGone(losses);
    if (isConnected_) signals_.raiseAlarm(losses);
    std::string text;
    for (int peer = 0; peer < size_; peer++)
      if (losses[peer] != kNone)
        text += (text.empty() ? "" : ",") + std::to_string(peer) + (losses[peer] == kLate ? ":late" : ":gone");
    {
      std::lock_guard<std::mutex> lock(mutex_);
      failure_ = text + "\n" + message;
    }
    mesh_->wakeWaiters();
  }

  // Of the ranks that had not come to the call, or, where all have and data only had to move, of all ranks, those that give
  // no sign of life: one that lives may wait in the call before for one that has stalled. Where all live, those that
  // had not come.
  void noteLate(const Job& job, std::vector<char>& losses) {
    if (job.kind == kConnect && !isConnected_) return;
    std::vector<int> missing;
    for (int peer = 0; peer < size_; peer++) {
      if (peer == rank_ || (job.isPairwise() && peer != job.root)) continue;
      const bool hasCome =
          !job.hasAgreed && (job.isPairwise() ? job.heard[0] != 0 : agreement_.hasCome(peer));
      if (!hasCome) missing.push_back(peer);
    }
    const bool asks = job.hasAgreed || missing.size() > 1;
    if (asks) awaitAnswers(missing);
    const auto isThere = [this](int peer) { return signals_.isThere(peer); };
    const bool allLive = asks && std::all_of(missing.begin(), missing.end(), isThere);
    for (const int peer : missing)
      if (!asks || !isThere(peer) || (allLive && !job.hasAgreed)) losses[peer] = kLate;
  }

  // As long as one of them is silent, and not for ever.
  void awaitAnswers(const std::vector<int>& peers) {
    signals_.ask();
    std::unique_lock<std::mutex> lock(mutex_);
    const auto isThere = [this](int peer) { return signals_.isThere(peer); };
    for (int look = 0; look < 8 && !isClosing_ && !std::all_of(peers.begin(), peers.end(), isThere); look++) {
      closing_.wait_for(lock, watchInterval_);
      signals_.answer();
    }
  }

  // The peers whose connection is broken; one that raised an alarm has itself lost another, whom it names: this rank,
  // where it came too late.
  void noteGone(std::vector<char>& losses) {
    if (!isConnected_) return;
    for (int peer = 0; peer < size_; peer++) {
      if (peer == rank_) continue;
      if (signals_.isAlarmedBy(peer)) {
        for (int lost = 0; lost < size_; lost++)
          if (signals_.lossesOf(peer)[lost] != kNone) losses[lost] = signals_.lossesOf(peer)[lost];
      } else if (losses[peer] == kNone && !signals_.isConnected(peer)) {
        losses[peer] = kGone;
      }
    }
  }

  const int rank_, size_;
  const milliseconds timeout_;
  const milliseconds watchInterval_;
  std::shared_ptr<Mesh> mesh_;
  Agreement agreement_;
  Signals signals_;
  std::atomic<bool> isConnected_{false};
  int notified_ = -1, notify_ = -1;

  std::mutex failing_;

  std::mutex mutex_;  // Of all that follows.
  std::condition_variable finished_, closing_;
  std::map<int, Lane> lanes_;
  std::map<int64_t, std::shared_ptr<Job>> jobs_;
  std::set<std::shared_ptr<Job>> running_;
  int64_t lastTicket_ = 0;
  bool isClosing_ = false;
  // "2:gone,3:late\nwhat happened"; empty as long as nothing has.
  std::string failure_;
  std::thread watchdog_;
};

}  // namespace roofline
