// The program of a thread of a CompileBatch: takes kernels that no other has begun until there are none.
import { workerData } from 'node:worker_threads';
import { type CompileOutcome, type CompileThreadData, kernelStates } from './compile-batch.ts';
import { type CompileRequest, loadNvrtc } from './nvrtc.ts';

const { requests, states, port } = workerData as CompileThreadData;

function compile(request: CompileRequest): CompileOutcome['image'] {
  try {
    return loadNvrtc().compile(request);
  } catch {
    // Who needs the kernel compiles it once more, and tells.
    return null;
  }
}

for (const [index, request] of requests.entries()) {
  const { waiting, begun, ended } = kernelStates;
  if (Atomics.compareExchange(states, index, waiting, begun) !== waiting) continue;
  try {
    const outcome: CompileOutcome = { index, image: compile(request) };
    port.postMessage(outcome, []);
  } finally {
    // Even if there was no memory for the image: somebody may wait.
    Atomics.store(states, index, ended);
    Atomics.notify(states, index);
  }
}
