import { setTimeout as sleep } from 'node:timers/promises';
import { type Tensor, device as openDevice, keep, mul, ones, scope, sum } from '@roofline/tensor-core';
import {
  CollectiveError,
  type DataParallelMode,
  DistributedDataParallel,
  initProcessGroup,
} from '@roofline/collectives';
import { openEmulatedGpu } from '../support/emulated-gpu.ts';

// The last rank passes over a batch without a backward pass; says when each rank hears of it, and what.

const [backend, mode] = process.argv.slice(2) as ['gloo' | 'emulated', DataParallelMode];
const steps = 200;
const skipped = 3;
const emulated = backend === 'emulated' ? openEmulatedGpu() : null;
const group = await initProcessGroup({
  backend: backend === 'gloo' ? 'gloo' : 'nccl',
  ...(emulated && { device: emulated.device }),
});
const device = group.device ?? openDevice('cpu');
const weights = [1, 2, 3].map(() => keep(ones([16], { device })).requiresGrad_());
const model = { namedParameters: () => weights.map((weight, i): [string, Tensor] => [`${i}`, weight]) };
const parallel = new DistributedDataParallel(model, group, { mode, bucketBytes: 64 });
let step = 0;
try {
  for (; step < steps; step++) {
    parallel.step = step;
    if (step === skipped && group.rank === group.size - 1) continue;
    scope(() => sum(weights.reduce((x, weight) => mul(x, weight))).backward());
    for (const weight of weights) weight.grad = null;
    // A watchdog has the time that a step of training takes.
    if (emulated) await sleep(20);
  }
  console.log('nothing was noticed');
} catch (error) {
  if (!(error instanceof CollectiveError)) throw error;
  console.log(JSON.stringify({ step, peers: error.peers, message: error.message }));
}
group.dispose();
