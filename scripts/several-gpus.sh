#!/usr/bin/env bash
# Tests and measures NCCL between the GPUs of one machine: scripts/several-gpus.sh RANKS FOLDER [STEP ...]
#
# Records go to FOLDER/h200xRANKS-allreduce, -allgather-reducescatter, -ddp, -ddp-compiled, -tensor and -context. Every step has a time
# limit, and those after one that fails run nevertheless; the last lines say which failed. All steps, in their order, if none is named:
#
#   nccl         every collective and dtype, and reductions in memory that all GPUs reach                 35 s
#   ops          collectives as ops, eager and compiled                                                  30 s
#   ddp-small    data-parallel steps of a small model; where they hang, the stacks of all processes      30 s
#   equality     data parallelism and the sharded optimizer are what one rank does                       25 s
#   faults       20 kills of eager and of compiled ranks, late ranks, mismatches, ranks that exit        160 s
#   allreduce    all-reduce of 1 MB to 1 GB next to PyTorch's                                            90 s
#   collectives  all-gather and reduce-scatter likewise                                                  160 s
#   ddp          xl in bfloat16, the three modes next to PyTorch's DistributedDataParallel               180 s
#   compiled     overlap of xl at context 512, eager and compiled, on one GPU and on all                 90 s
#   tensor       layers divided over the ranks are one rank's; 2.7b at context 512 on one GPU and on all not timed yet
#   zero         the same with AdamW's state split over the ranks: memory by rank                        60 s
#   fsdp         compiled steps of sharded parameters do what eager ones do                              90 s
#   fsdp-2.7b    2.7b at context 512, compiled: parameters sharded and on each rank: time and memory     30 s
#   fsdp-8b      8b, 32,768 tokens a GPU, within 69 GiB, then PyTorch's FSDP2, compiled (needs 141 GB)   150 s
#   context      sequences divided over the ranks are one rank's                                        10 s
#   context-8b   8b, one sequence of 65,536 tokens divided over the GPUs (needs 141 GB)                  120 s
#   fsdp-faults  20 ranks killed in the middle of gathers and of replays of sharded steps                80 s
#
# In an unpacked bundle (`roofline bundle`), into which this script is copied as scripts/several-gpus.sh, it runs what the bundle
# has; ROOFLINE names another command for `roofline`.
set -u
cd "$(dirname "$0")/.."
ranks=$1
folder=$2
shift 2
steps=${*:-nccl ops ddp-small equality faults allreduce collectives ddp compiled tensor zero fsdp fsdp-2.7b fsdp-8b context context-8b fsdp-faults}
export ROOT=$PWD REQUIRE_GPU=1
export PATH="$ROOT/bin:$ROOT/node_modules/.bin:$PATH"
mkdir -p "$folder"
failed=()
# Small calls take what the host takes, whose code is fast once it has run some hundred times.
turns=(--backend nccl --nproc "$ranks" --size 1MB,10MB,100MB,1GB --warmup 300 --iterations 100 --peer torch)

# A bundle has its own Node.js, and the command as it was built.
sources=(node --conditions=roofline-source --disable-warning=ExperimentalWarning "$ROOT/packages/bench-harness/src/cli.ts")
if [ -x "$ROOT/bin/node" ]; then sources=("$ROOT/roofline"); fi
export ROOFLINE=${ROOFLINE:-${sources[*]}}

roofline() { $ROOFLINE "$@"; }
gpu_tests() {
  cd "$ROOT/packages/collectives" &&
    node "$ROOT/node_modules/vitest/vitest.mjs" run --config ../../tooling/vitest.gpu.config.ts "$@"
}
export -f roofline gpu_tests

# step SECONDS NAME COMMAND...: runs it in a group of its own, all of which ends at the limit.
step() {
  local limit=$1 name=$2 began=$SECONDS code
  shift 2
  echo "== $name: $*"
  timeout -k 5 "$limit" bash -c '"$@"' - "$@" 2>&1
  code=$?
  echo "== $name: exit code $code after $((SECONDS - began)) s"
  [ $code -eq 0 ] || failed+=("$name")
  return $code
}

descendants() {
  local pid
  # After the name, which may hold spaces, come the state and the parent.
  for pid in $(sed -nE "s/^([0-9]+) \\(.*\\) [A-Za-z] $1 .*/\\1/p" /proc/[0-9]*/stat 2> /dev/null); do
    echo "$pid"
    descendants "$pid"
  done
}

# Where every thread of every process below this one is; a command that hangs is then killed by its limit.
stacks() {
  local pid
  for pid in $(descendants "$1"); do
    echo "-- process $pid: $(tr '\0' ' ' < "/proc/$pid/cmdline" | cut -c1-150)"
    timeout 20 "$(command -v cuda-gdb || command -v gdb)" -p "$pid" -batch -ex 'set pagination off' -ex 'thread apply all bt 14' 2>/dev/null |
      grep -E '^(Thread|#)' | cut -c1-160 | head -150
  done
}

# watched SECONDS COMMAND...: its progress as a terminal would show it, and the stacks where it takes longer.
watched() {
  local limit=$1 log pid code
  shift
  log=$(mktemp)
  SHELL=$BASH script -qfec "$*" "$log" > /dev/null 2>&1 < /dev/null &
  pid=$!
  for _ in $(seq "$limit"); do
    kill -0 $pid 2> /dev/null || break
    sleep 1
  done
  if kill -0 $pid 2> /dev/null; then
    echo "-- still running after $limit s; its last words:"
    tr '\r' '\n' < "$log" | tail -3
    stacks $pid
    # By their numbers: a rank that hangs in a library hears nothing else.
    kill -KILL $(descendants $pid) $pid 2> /dev/null
    code=124
  fi
  wait $pid 2> /dev/null
  code=${code:-$?}
  tr '\r' '\n' < "$log" | tail -12
  return "$code"
}
export -f watched stacks descendants

for name in $steps; do
  case $name in
    nccl) step 120 nccl gpu_tests test/gpu/nccl.test.ts test/gpu/symmetric-memory.test.ts ;;
    ops) step 240 ops gpu_tests test/gpu/ops.test.ts ;;
    ddp-small)
      small="roofline ddp --backend nccl --nproc $ranks --size small --dtype bfloat16 --context 256 --steps 3 --warmup 1"
      step 150 'ddp of small' watched 60 "$small --mode naive,overlap --out $(mktemp -d)"
      step 150 'ddp of small next to PyTorch' watched 90 "$small --mode overlap --peer torch --out $(mktemp -d)"
      ;;
    equality) step 240 equality gpu_tests test/gpu/equality.test.ts -t 'data-parallel|sharded-optimizer' ;;
    fsdp) step 300 fsdp gpu_tests test/gpu/equality.test.ts -t compiled-sharded ;;
    fsdp-2.7b)
      step 400 fsdp-2.7b roofline ddp --backend nccl --nproc "$ranks" --size 2.7b --dtype bfloat16 --context 512 --batch 4 \
        --attention flash --execution compiled --mode overlap,fsdp --steps 10 --warmup 3 --out "$folder/h200x$ranks-fsdp"
      ;;
    fsdp-8b)
      step 580 fsdp-8b roofline ddp --backend nccl --nproc "$ranks" --size 8b --dtype bfloat16 --context 32768 --batch 1 \
        --attention flash --execution compiled --mode fsdp --recompute attention-kept --logits chunked \
        --memory-budget 69GiB --steps 5 --warmup 2 --peer torch --out "$folder/h200x$ranks-8b"
      ;;
    context) step 240 'equality of context' gpu_tests test/gpu/equality.test.ts -t context-parallel ;;
    context-8b)
      step 580 context-8b roofline ddp --backend nccl --nproc "$ranks" --size 8b --dtype bfloat16 --context 65536 --batch 1 \
        --attention flash --execution compiled --mode fsdp-context --recompute attention-kept --logits chunked \
        --steps 5 --warmup 2 --out "$folder/h200x$ranks-context"
      ;;
    fsdp-faults) step 420 fsdp-faults gpu_tests test/gpu/nccl-faults.test.ts -t 'parameters: (compiled )?sharded' ;;
    faults) step 580 faults gpu_tests test/gpu/nccl-faults.test.ts ;;
    allreduce)
      step 200 allreduce roofline allreduce "${turns[@]}" --out "$folder/h200x$ranks-allreduce"
      ;;
    collectives)
      step 300 collectives roofline allreduce --op allgather,reducescatter "${turns[@]}" \
        --out "$folder/h200x$ranks-allgather-reducescatter"
      ;;
    compiled)
      step 400 compiled roofline ddp --backend nccl --nproc "1,$ranks" --size xl --dtype bfloat16 --context 512 --batch 4 \
        --steps 8 --warmup 3 --mode overlap --execution eager,compiled --out "$folder/h200x$ranks-ddp-compiled"
      ;;
    tensor)
      step 180 'equality of tensor' gpu_tests test/gpu/equality.test.ts -t tensor-parallel
      # As many tokens: one GPU takes the batches of all.
      model=(--backend nccl --size 2.7b --dtype bfloat16 --context 512 --execution eager,compiled --steps 8 --warmup 3)
      step 300 'one GPU' roofline ddp "${model[@]}" --nproc 1 --batch $((2 * ranks)) --mode overlap --out "$folder/h200x$ranks-tensor"
      step 300 tensor roofline ddp "${model[@]}" --nproc "$ranks" --batch 2 --mode tensor --out "$folder/h200x$ranks-tensor"
      ;;
    ddp | zero)
      model=(--backend nccl --nproc "$ranks" --size xl --dtype bfloat16 --context 512 --batch 4 --steps 8 --warmup 2)
      which=()
      [ "$name" = zero ] && which=(--mode overlap --optimizer sharded)
      step 300 "$name" roofline ddp "${model[@]}" --peer torch "${which[@]}" --out "$folder/h200x$ranks-ddp"
      ;;
    *)
      echo "There is no step $name."
      failed+=("$name")
      ;;
  esac
done
echo "== failed: ${failed[*]:-none}; $SECONDS s in all"
[ ${#failed[@]} -eq 0 ]
