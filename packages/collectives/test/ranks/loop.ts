import { setTimeout as sleep } from 'node:timers/promises';
import { type Tensor, add, compile, full, mul, scope } from '@roofline/tensor-core';
import { CollectiveError, allReduce, initProcessGroup, makeSymmetric } from '@roofline/collectives';
import { shardedStep } from './sharded-step.ts';

// All-reduces, each by itself or in a compiled step, in NCCL's memory or in that of all ranks, or training steps of sharded
// parameters, until one fails; then says what and when, and ends, stays or goes on with those left, as asked to.

const [
  elements = '100000',
  then = 'exit',
  firstTimeoutMs = '30000',
  backend = 'gloo',
  furtherMs = '10000',
  execution = 'eager',
] = process.argv.slice(2);
// Each rank is more patient than the one before, so that it hears of that one's end first.
const timeoutMs = Number(firstTimeoutMs) + Number(furtherMs) * Number(process.env['RANK']);
const group = await initProcessGroup({ backend: backend as 'gloo' | 'nccl', timeoutMs });
const device = group.device ?? 'cpu';
const x = full([Number(elements)], 1, { device });
const step = compile((y: Tensor) => {
  const reduced = allReduce(mul(y, 1), group, { op: 'max' });
  return add(reduced, mul(y, 2));
});
const isSharded = execution.endsWith('sharded');
const train = isSharded ? shardedStep(group, Number(elements)) : null;
const compiledTrain = train && execution === 'compiled sharded' ? compile(train) : train;
if (execution.endsWith('symmetric')) makeSymmetric(group, [x]);
const average = () => group.allReduce(x, { op: 'average' }).wait();
const reduceSymmetric = execution === 'compiled symmetric' ? compile(average) : average;
let count = 0;

async function runEagerly(): Promise<void> {
  const work = group.allReduce(x, { op: 'max' });
  if (count % 2 === 0) work.wait();
  else await work.done;
}

async function runCompiled(): Promise<void> {
  const result = step(x);
  if (count % 2 === 0) result.toFlatArray();
  else await sleep(0);
  result.dispose();
}

async function runSymmetric(): Promise<void> {
  reduceSymmetric();
  if (count % 2 === 0) x.toFlatArray();
  await sleep(0);
}

async function runSharded(): Promise<void> {
  scope(() => {
    const loss = compiledTrain!();
    if (count % 2 === 0) loss.toFlatArray();
  });
  await sleep(0);
}

const runs = {
  eager: runEagerly,
  compiled: runCompiled,
  symmetric: runSymmetric,
  'compiled symmetric': runSymmetric,
  sharded: runSharded,
  'compiled sharded': runSharded,
};

try {
  for (;;) {
    await runs[execution as keyof typeof runs]();
    count++;
    if (count === 10) console.log('running');
  }
} catch (error) {
  if (!(error instanceof CollectiveError)) throw error;
  const { op, rank, peers, message } = error;
  console.log(JSON.stringify({ op, rank, peers, message, atMs: Date.now() }));
  let later = '';
  try {
    group.allReduce(x).wait();
  } catch (again) {
    later = (again as Error).message;
  }
  if (later !== message) console.log(`later: ${later}`);
  if (then === 'exit') throw error;
  if (then === 'stay') {
    await sleep(6000);
    process.exit(0);
  }
  const left = await group.subGroup(group.ranks.filter((member) => !peers.includes(member)));
  const y = full([3], group.rank, { device });
  left.allReduce(y).wait();
  console.log(`left ${left.ranks.join()}: ${y.toFlatArray().join()}`);
  left.dispose();
  group.dispose();
}
