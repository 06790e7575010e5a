// A stand-in for libnccl, for ranks without GPUs: calls are put on streams that a test plays, and move data between
// processes through files. It watches how it is used: what breaks NCCL's rules is counted, and reported by stub_faults.
#include <immintrin.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { kSuccess = 0, kInternalError = 3, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7 };
enum Kind { kAllReduce, kBroadcast, kReduce, kAllGather, kReduceScatter, kSend, kRecv };
const char* const names[] = {"AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter", "Send", "Recv"};

struct UniqueId { char internal[128]; };
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
};
// What NCCL before 2.18 takes, which can split nothing.
const int splittingVersion = 21800;
const size_t oldConfigBytes = 24;

std::mutex logMutex;
std::string logText, faultText;
void note(std::string& text, const std::string& line) {
  std::lock_guard<std::mutex> lock(logMutex);
  text += line + "\n";
}

struct Comm {
  std::string folder;
  int rank, size;
  long collectives = 0;
  std::map<int, long> sends, receives;
  std::atomic<bool> isAborted{false};
  // Of all communicators that share their end.
  std::shared_ptr<std::atomic<bool>> isOver = std::make_shared<std::atomic<bool>>(false);
  std::atomic<int> inside{0}, asyncError{0}, leftInProgress{3};
  bool isCaptured = false, isConnected = false, hasCalled = false, blocks = false, sharesEnd = false;
  // What is being split off, and where its caller finds it.
  Comm* child = nullptr;
  Comm** childOut = nullptr;
};

// Counts threads that are in the library with one communicator: there may be one.
struct Entered {
  Comm* comm;
  Entered(Comm* c, const char* what) : comm(c) {
    if (comm->inside++ != 0) note(faultText, std::string(what) + " while another thread is inside");
    if (comm->isAborted) note(faultText, std::string(what) + " after ncclCommAbort");
  }
  ~Entered() { comm->inside--; }
};

struct Call {
  Comm* comm;
  Kind kind;
  const char* in;
  char* out;
  size_t count;
  int dtype, op, peer;
  long number;
};
// One that is part of a CUDA graph runs with each launch.
struct Task { std::vector<Call> calls; bool isCaptured = false; };

// Gives whether the stream is being captured.
using Enqueue = int (*)(uint64_t stream, uint64_t function, uint64_t argument);
Enqueue enqueue = nullptr;
int depth = 0, failNext = 0, failNextCaptured = 0;
std::atomic<int> graphs{0};
uint64_t groupStream = 0;
std::vector<Call> grouped;
std::vector<Comm*> comms;

size_t bytesOf(int dtype) {
  switch (dtype) {
    case 6: case 9: return 2;
    case 2: case 7: return 4;
    case 4: case 8: return 8;
  }
  return 0;
}

__attribute__((target("f16c"))) long double fromHalf(uint16_t x) { return _cvtsh_ss(x); }
__attribute__((target("f16c"))) uint16_t toHalf(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }

template <typename T> T at(const char* from, size_t i) {
  T value;
  memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T> void put(char* to, size_t i, T value) { memcpy(to + i * sizeof(T), &value, sizeof(T)); }

long double load(const char* from, size_t i, int dtype) {
  switch (dtype) {
    case 2: return at<int32_t>(from, i);
    case 4: return at<int64_t>(from, i);
    case 6: return fromHalf(at<uint16_t>(from, i));
    case 7: return at<float>(from, i);
    case 8: return at<double>(from, i);
  }
  const uint32_t bits = uint32_t{at<uint16_t>(from, i)} << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

void store(char* to, size_t i, int dtype, long double value) {
  switch (dtype) {
    case 2: put<int32_t>(to, i, value); return;
    case 4: put<int64_t>(to, i, value); return;
    case 6: put<uint16_t>(to, i, toHalf(value)); return;
    case 7: put<float>(to, i, value); return;
    case 8: put<double>(to, i, value); return;
  }
  const float single = value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  put<uint16_t>(to, i, (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::string nameOf(const Call& call, int rank) {
  const std::string folder = call.comm->folder + "/";
  if (call.kind == kSend || call.kind == kRecv) {
    const int from = call.kind == kSend ? rank : call.peer, to = call.kind == kSend ? call.peer : rank;
    return folder + "p" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(call.number);
  }
  return folder + "c" + std::to_string(call.number) + "-" + std::to_string(rank);
}

void say(const Call& call) {
  if (call.kind == kRecv) return;
  const size_t pieces = call.kind == kReduceScatter ? call.comm->size : 1;
  const std::string name = nameOf(call, call.comm->rank);
  const bool isSilent = call.kind == kBroadcast && call.peer != call.comm->rank;
  std::ofstream(name + "~", std::ios::binary)
      .write(call.in, isSilent ? 0 : call.count * pieces * bytesOf(call.dtype));
  rename((name + "~").c_str(), name.c_str());
}

// What a rank said, once it has; nothing where the communicator is aborted first.
std::string hear(const Call& call, const std::string& name) {
  while (access(name.c_str(), F_OK) != 0) {
    if (*call.comm->isOver) return "";
    usleep(200);
  }
  std::ifstream file(name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void reduce(const Call& call, const std::vector<std::string>& said, size_t first) {
  for (size_t i = 0; i < call.count; i++) {
    long double value = load(said[0].data(), first + i, call.dtype);
    for (size_t peer = 1; peer < said.size(); peer++) {
      const long double other = load(said[peer].data(), first + i, call.dtype);
      if (call.op == 0 || call.op == 4) value += other;
      else if (call.op == 1) value *= other;
      else if (call.op == 2) value = std::max(value, other);
      else value = std::min(value, other);
    }
    store(call.out, i, call.dtype, call.op == 4 ? value / call.comm->size : value);
  }
}

void listen(const Call& call) {
  Comm& comm = *call.comm;
  if (call.kind == kSend) return;
  if (call.kind == kRecv) {
    const std::string said = hear(call, nameOf(call, comm.rank));
    memcpy(call.out, said.data(), said.size());
    return;
  }
  std::vector<std::string> said;
  for (int peer = 0; peer < comm.size; peer++) said.push_back(hear(call, nameOf(call, peer)));
  if (*comm.isOver) return;
  // Ranks that do not fit: NCCL would read past the end.
  for (auto& text : said) text.resize(std::max(text.size(), call.count * comm.size * bytesOf(call.dtype)));
  const size_t bytes = call.count * bytesOf(call.dtype);
  if (call.kind == kBroadcast) memcpy(call.out, said[call.peer].data(), bytes);
  else if (call.kind == kAllGather)
    for (int peer = 0; peer < comm.size; peer++) memcpy(call.out + peer * bytes, said[peer].data(), bytes);
  else if (call.kind == kReduceScatter) reduce(call, said, comm.rank * call.count);
  else if (call.kind == kAllReduce || call.peer == comm.rank) reduce(call, said, 0);
}

// Ranks number calls as they run, which all do in one order, whatever was captured in between.
long nextNumber(const Call& call) {
  Comm* comm = call.comm;
  return (call.kind == kSend ? comm->sends[call.peer] : call.kind == kRecv ? comm->receives[call.peer] : comm->collectives)++;
}

void run(void* argument) {
  Task* task = static_cast<Task*>(argument);
  for (auto& call : task->calls) call.number = nextNumber(call);
  for (auto& call : task->calls) if (!*call.comm->isOver) say(call);
  for (auto& call : task->calls) if (!*call.comm->isOver) listen(call);
  if (!task->isCaptured) delete task;
}

bool areThere(const Comm* comm, const char* what) {
  bool all = true;
  for (int peer = 0; peer < comm->size; peer++)
    all &= access((comm->folder + "/" + what + "-" + std::to_string(peer)).c_str(), F_OK) == 0;
  return all;
}

void come(const Comm* comm, const char* what) {
  std::ofstream(comm->folder + "/" + what + "-" + std::to_string(comm->rank)).put('j');
}

int flush(std::vector<Call> calls, uint64_t stream) {
  const bool connects = std::any_of(calls.begin(), calls.end(), [](auto& call) { return !call.comm->hasCalled; });
  // The first call connects; where calls block, until all ranks have come to theirs.
  for (auto& call : calls)
    if (call.comm->blocks && !call.comm->hasCalled) {
      call.comm->hasCalled = true;
      for (come(call.comm, "called"); !areThere(call.comm, "called"); usleep(200))
        if (*call.comm->isOver) return kInternalError;
    }
  auto task = new Task{calls};
  // What has been queued may run, and be gone, before this returns; what is captured does not.
  if (enqueue(stream, reinterpret_cast<uint64_t>(&run), reinterpret_cast<uint64_t>(task))) {
    task->isCaptured = true;
    for (auto& call : calls) call.comm->isCaptured = true;
    if (connects) note(faultText, "a communicator's first call is captured");
    if (failNextCaptured != 0) {
      const int result = failNextCaptured;
      failNextCaptured = 0;
      return result;
    }
  }
  // A communicator that does not block connects meanwhile.
  for (auto& call : calls)
    if (!call.comm->hasCalled) {
      call.comm->hasCalled = true;
      call.comm->leftInProgress = 2;
      return kInProgress;
    }
  return kSuccess;
}

int begin(Comm* comm, Kind kind, const void* in, void* out, size_t count, int dtype, int op, int peer, uint64_t stream) {
  Entered entered(comm, names[kind]);
  note(logText, std::string(names[kind]) + " " + std::to_string(count) + " dtype " + std::to_string(dtype) + " op " +
                    std::to_string(op) + " peer " + std::to_string(peer) + " stream " + std::to_string(stream) +
                    (depth > 0 ? " grouped" : ""));
  if (!comm->isConnected) note(faultText, "a call before the communicator was connected");
  if (comm->child) note(faultText, "a call on the communicator that another was split off");
  if (failNext != 0) {
    const int result = failNext;
    failNext = 0;
    return result;
  }
  if (bytesOf(dtype) == 0 || op > 4 || peer >= comm->size) return kInvalidArgument;
  const Call call{comm, kind, static_cast<const char*>(in), static_cast<char*>(out), count, dtype, op, peer, 0};
  if (depth == 0) return flush({call}, stream);
  groupStream = stream;
  grouped.push_back(call);
  return kSuccess;
}

}  // namespace

API void stub_set_enqueue(Enqueue to) { enqueue = to; }
API const char* stub_log() { return logText.c_str(); }
API const char* stub_faults() { return faultText.c_str(); }
API void stub_set_graphs(int count) { graphs = count; }
API void stub_fail_next(int result) { failNext = result; }
API void stub_fail_next_captured(int result) { failNextCaptured = result; }
API void stub_async_error(int result) { for (auto comm : comms) comm->asyncError = result; }
API int stub_aborted() {
  int count = 0;
  for (auto comm : comms) count += comm->isAborted && !comm->child;
  return count;
}

int stubVersion() {
  const char* given = getenv("STUB_NCCL_VERSION");
  return given ? atoi(given) : 23007;
}

API int ncclGetVersion(int* version) {
  *version = stubVersion();
  return kSuccess;
}

bool isValid(const Config* config) {
  if (config->magic != 0xcafebeef) return false;
  if (stubVersion() < splittingVersion) return config->size == oldConfigBytes && config->version == 21400;
  for (int field : {config->cgaClusterSize, config->minCTAs, config->maxCTAs, config->trafficClass})
    if (field != INT_MIN) return false;
  return config->size == sizeof(Config) && config->version == 21800 && !config->netName;
}

API int ncclGetUniqueId(UniqueId* id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s/XXXXXX", getenv("STUB_NCCL_FOLDER"));
  return mkdtemp(id->internal) ? kSuccess : kInvalidUsage;
}

API int ncclCommInitRankConfig(Comm** out, int ranks, UniqueId id, int rank, const Config* config) {
  if (!isValid(config)) return kInvalidArgument;
  if (config->blocking != 0) note(faultText, "a communicator that blocks while it connects");
  auto comm = new Comm;
  comm->folder = id.internal;
  comm->rank = rank;
  comm->size = ranks;
  comm->sharesEnd = config->size == sizeof(Config) && config->splitShare == 1;
  // One that never joins leaves the others connecting.
  if (!getenv("STUB_NCCL_MUTE")) come(comm, "joined");
  comms.push_back(*out = comm);
  return kInProgress;
}

API int ncclCommSplit(Comm* comm, int color, int key, Comm** out, const Config* config) {
  Entered entered(comm, "CommSplit");
  if (!isValid(config) || color != 0 || key != comm->rank || !comm->isConnected || comm->child) return kInvalidArgument;
  if (!comm->sharesEnd) note(faultText, "a communicator whose calls nothing can end");
  auto child = new Comm;
  child->folder = comm->folder + "/split";
  mkdir(child->folder.c_str(), 0700);
  child->rank = comm->rank;
  child->size = comm->size;
  child->blocks = config->blocking == 1;
  child->isConnected = true;
  child->leftInProgress = 0;
  child->isOver = comm->isOver;
  come(child, "joined");
  comm->child = child;
  comm->childOut = out;
  comm->leftInProgress = 3;
  return kInProgress;
}

API int ncclCommGetAsyncError(Comm* comm, int* result) {
  Entered entered(comm, "GetAsyncError");
  const bool isReady = areThere(comm, "joined") && (!comm->childOut || areThere(comm->child, "joined"));
  if (comm->asyncError != 0) *result = comm->asyncError;
  else if (!isReady || comm->leftInProgress > 0) *result = kInProgress;
  else *result = kSuccess;
  if (isReady && comm->leftInProgress > 0) comm->leftInProgress--;
  comm->isConnected |= *result == kSuccess;
  if (*result == kSuccess && comm->childOut) {
    comms.push_back(*comm->childOut = comm->child);
    comm->childOut = nullptr;
  }
  return kSuccess;
}

// Keeps the memory, so that what comes after it is noticed.
API int ncclCommAbort(Comm* comm) {
  Entered entered(comm, "CommAbort");
  *comm->isOver = true;
  // NCCL waits, for ever, until the CUDA graphs with its calls have gone.
  for (int tries = 0; comm->isCaptured && graphs > 0; usleep(1000))
    if (tries++ == 20000) {
      note(faultText, "CommAbort waits for CUDA graphs with its calls");
      break;
    }
  comm->isAborted = true;
  return kSuccess;
}

API int ncclGroupStart() { depth++; return kSuccess; }
API int ncclGroupEnd() {
  if (--depth > 0) return kSuccess;
  auto calls = std::move(grouped);
  grouped.clear();
  return calls.empty() ? kSuccess : flush(calls, groupStream);
}

API int ncclAllReduce(const void* in, void* out, size_t count, int dtype, int op, Comm* comm, uint64_t stream) {
  return begin(comm, kAllReduce, in, out, count, dtype, op, -1, stream);
}
API int ncclBroadcast(const void* in, void* out, size_t count, int dtype, int root, Comm* comm, uint64_t stream) {
  return begin(comm, kBroadcast, in, out, count, dtype, 0, root, stream);
}
API int ncclReduce(const void* in, void* out, size_t count, int dtype, int op, int root, Comm* comm, uint64_t stream) {
  return begin(comm, kReduce, in, out, count, dtype, op, root, stream);
}
API int ncclAllGather(const void* in, void* out, size_t count, int dtype, Comm* comm, uint64_t stream) {
  return begin(comm, kAllGather, in, out, count, dtype, 0, -1, stream);
}
API int ncclReduceScatter(const void* in, void* out, size_t count, int dtype, int op, Comm* comm, uint64_t stream) {
  return begin(comm, kReduceScatter, in, out, count, dtype, op, -1, stream);
}
API int ncclSend(const void* in, size_t count, int dtype, int peer, Comm* comm, uint64_t stream) {
  return begin(comm, kSend, in, nullptr, count, dtype, 0, peer, stream);
}
API int ncclRecv(void* out, size_t count, int dtype, int peer, Comm* comm, uint64_t stream) {
  return begin(comm, kRecv, nullptr, out, count, dtype, 0, peer, stream);
}

API const char* ncclGetErrorString(int result) {
  return result == kInvalidUsage ? "invalid usage" : result == 6 ? "remote process exited" : "an error";
}
API const char* ncclGetLastError(Comm*) { return "the stub's last error"; }
