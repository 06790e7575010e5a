// The collectives of a group, by Gloo.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "elements.h"
#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/broadcast.h"
#include "gloo/gather.h"
#include "gloo/reduce.h"
#include "gloo/scatter.h"
#include "job.h"
#include "mesh.h"

namespace roofline {

// Slot prefixes in addition to those of agreement.h.
constexpr uint8_t kRingSlot = 0x24, kPointToPointSlot = 0x25;

inline void movePairwise(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag) {
  const auto slot = gloo::Slot::build(kPointToPointSlot, tag);
  const size_t bytes = job.count * factsOf(job.dtype).bytes;
  auto buffer = mesh->createUnboundBuffer(job.kind == kSend ? job.in : job.out, bytes);
  if (job.kind == kSend) {
    buffer->send(job.root, slot);
    buffer->waitSend();
  } else {
    buffer->recv(job.root, slot);
    buffer->waitRecv();
  }
}

// Every collective of one rank gives it what it brought.
inline void runAlone(const Job& job) {
  if (job.in && job.out && job.in != job.out) memmove(job.out, job.in, job.count * factsOf(job.dtype).bytes);
}

template <typename Options>
void setElements(Options& options, char* in, char* out, size_t count, size_t bytes) {
  const auto set = [&](auto sample) {
    using T = decltype(sample);
    if (in != out) options.setInput(reinterpret_cast<T*>(in), count);
    options.setOutput(reinterpret_cast<T*>(out), count);
  };
  if (bytes == 2) set(uint16_t{});
  else if (bytes == 4) set(uint32_t{});
  else set(uint64_t{});
}

inline void allReduce(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag, const DTypeFacts& facts) {
  gloo::AllreduceOptions options(mesh);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  setElements(options, job.in, job.out, job.count, facts.bytes);
  options.setReduceFunction(facts.combineOf(static_cast<Reduction>(job.reduction)));
  options.setTag(tag);
  gloo::allreduce(options);
}

// Gloo writes to the outputs of all ranks; only the root's are the caller's.
inline void reduce(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag, const DTypeFacts& facts) {
  std::unique_ptr<char[]> scratch;
  char* out = job.out;
  if (mesh->rank != job.root) {
    scratch.reset(new char[job.count * facts.bytes]);
    out = scratch.get();
  }
  gloo::ReduceOptions options(mesh);
  setElements(options, job.in, out, job.count, facts.bytes);
  options.setReduceFunction(facts.combineOf(static_cast<Reduction>(job.reduction)));
  options.setRoot(job.root);
  options.setTag(tag);
  gloo::reduce(options);
}

// A ring over Gloo's transport: Gloo itself has only the halving-doubling form, which gave wrong values. The piece
// of rank r travels from r + 1 around to r, and each rank adds its part.
inline void reduceScatter(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag, const DTypeFacts& facts) {
  const int rank = mesh->rank, size = mesh->size;
  const size_t bytes = job.count * facts.bytes;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const auto slot = gloo::Slot::build(kRingSlot, tag);
  const auto combine = facts.combineOf(static_cast<Reduction>(job.reduction));
  std::unique_ptr<char[]> memory[2] = {std::unique_ptr<char[]>(new char[bytes]),
                                       std::unique_ptr<char[]>(new char[bytes])};
  std::unique_ptr<gloo::transport::UnboundBuffer> partial[2] = {mesh->createUnboundBuffer(memory[0].get(), bytes),
                                               mesh->createUnboundBuffer(memory[1].get(), bytes)};
  auto input = mesh->createUnboundBuffer(job.in, bytes * size);
  const auto pieceOf = [&](int step) { return static_cast<size_t>((rank - 1 - step + 2 * size) % size); };
  for (int step = 0; step < size - 1; step++) {
    gloo::transport::UnboundBuffer& receiver = *partial[step % 2];
    gloo::transport::UnboundBuffer& sender = step == 0 ? *input : *partial[(step + 1) % 2];
    receiver.recv(left, slot, 0, bytes);
    sender.send(right, slot, step == 0 ? pieceOf(0) * bytes : 0, bytes);
    receiver.waitRecv();
    combine(receiver.ptr, receiver.ptr, job.in + pieceOf(step + 1) * bytes, job.count);
    sender.waitSend();
  }
  memcpy(job.out, memory[(size - 2) % 2].get(), bytes);
}

// To the rank so many further, from the one as many before, both at once.
inline void shift(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag, size_t bytes) {
  const int rank = mesh->rank, size = mesh->size;
  const int to = (rank + job.root) % size, from = (rank + size - job.root) % size;
  if (to == rank) {
    memcpy(job.out, job.in, bytes);
    return;
  }
  const auto slot = gloo::Slot::build(kRingSlot, tag);
  auto input = mesh->createUnboundBuffer(job.in, bytes);
  auto output = mesh->createUnboundBuffer(job.out, bytes);
  output->recv(from, slot, 0, bytes);
  input->send(to, slot, 0, bytes);
  output->waitRecv();
  input->waitSend();
}

inline void runReduction(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag) {
  const DTypeFacts facts = factsOf(job.dtype);
  if (job.kind == kAllReduce) allReduce(mesh, job, tag, facts);
  else if (job.kind == kReduce) reduce(mesh, job, tag, facts);
  else reduceScatter(mesh, job, tag, facts);
  const bool hasResult = job.kind != kReduce || mesh->rank == job.root;
  if (job.reduction == kAverage && hasResult) facts.divide(job.out, job.count, mesh->size);
}

// By float32: float16 need not hold the sum of values whose average it holds.
inline void averageHalves(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag) {
  using Half = Element<gloo::float16>;
  std::vector<float> in(job.kind == kReduceScatter ? job.count * mesh->size : job.count), out(job.count);
  const auto halves = reinterpret_cast<const gloo::float16*>(job.in);
  std::transform(halves, halves + in.size(), in.begin(), Half::load);
  Job wide{};
  wide.kind = job.kind;
  wide.dtype = kFloat32;
  wide.reduction = kAverage;
  wide.root = job.root;
  wide.in = reinterpret_cast<char*>(in.data());
  wide.out = reinterpret_cast<char*>(out.data());
  wide.count = job.count;
  runReduction(mesh, wide, tag);
  if (job.kind == kReduce && mesh->rank != job.root) return;
  std::transform(out.begin(), out.end(), reinterpret_cast<gloo::float16*>(job.out), Half::store);
}

inline void runCollective(const std::shared_ptr<Mesh>& mesh, const Job& job, uint32_t tag) {
  const int rank = mesh->rank, size = mesh->size;
  const size_t bytes = job.count * factsOf(job.dtype).bytes;
  switch (job.kind) {
    case kAllReduce:
    case kReduce:
    case kReduceScatter:
      if (job.dtype == kFloat16 && job.reduction == kAverage) averageHalves(mesh, job, tag);
      else runReduction(mesh, job, tag);
      break;
    case kBroadcast: {
      gloo::BroadcastOptions options(mesh);
      options.setOutput(job.out, bytes);
      options.setRoot(job.root);
      options.setTag(tag);
      gloo::broadcast(options);
      break;
    }
    case kAllGather: {
      gloo::AllgatherOptions options(mesh);
      options.setInput(job.in, bytes);
      options.setOutput(job.out, bytes * size);
      options.setTag(tag);
      gloo::allgather(options);
      break;
    }
    case kAllToAll: {
      gloo::AlltoallOptions options(mesh);
      options.setInput(job.in, bytes * size);
      options.setOutput(job.out, bytes * size);
      options.setTag(tag);
      gloo::alltoall(options);
      break;
    }
    case kGather: {
      gloo::GatherOptions options(mesh);
      options.setInput(job.in, bytes);
      if (rank == job.root) options.setOutput(job.out, bytes * size);
      options.setRoot(job.root);
      options.setTag(tag);
      gloo::gather(options);
      break;
    }
    case kScatter: {
      gloo::ScatterOptions options(mesh);
      if (rank == job.root) {
        std::vector<char*> pieces;
        for (int peer = 0; peer < size; peer++) pieces.push_back(job.in + peer * bytes);
        options.setInputs(pieces, bytes);
      }
      options.setOutput(job.out, bytes);
      options.setRoot(job.root);
      options.setTag(tag);
      gloo::scatter(options);
      break;
    }
    case kShift:
      shift(mesh, job, tag, bytes);
      break;
    default: return;
  }
}

}  // namespace roofline
