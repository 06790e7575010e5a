// A call on its way through a group's threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace roofline {

// The numbers that JavaScript passes; src/gloo/native-codes.ts has the same.
enum Kind {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
  kBarrier,
  kShift,
  kConnect
};
enum State { kPending, kDone, kMismatch, kFailed };

struct Job {
  Kind kind;
  int dtype;
  int reduction;
  // Root of the collective, peer of a send or receive, or by how many ranks a shift goes.
  int root;
  char* in;
  char* out;
  // Elements that each rank gives, or gets where it gets fewer.
  size_t count;
  // Of a connect: the peers' addresses. Else what all ranks must agree on.
  std::vector<char> descriptor;

  int state = kPending;
  std::string text;
  std::chrono::steady_clock::time_point deadline;
  // When its data moved: from when all its ranks had come, to its end.
  std::chrono::steady_clock::time_point began, ended;
  // Whether all its ranks have come: then none is late.
  std::atomic<bool> hasAgreed{false};
  // Of a send or receive: what the peer said.
  std::vector<char> heard;

  bool isPairwise() const { return kind == kSend || kind == kRecv; }
};

}  // namespace roofline
