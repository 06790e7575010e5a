import { deepStrictEqual, match, ok, throws } from 'node:assert/strict';
import {
  type DType,
  type Tensor,
  backward,
  compile,
  isFloatingPoint,
  mul,
  select,
  slice,
  sum,
  tensor,
  toDevice,
  zeros,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { type Reduction, initProcessGroup } from '@roofline/collectives';
import { openEmulatedGpu } from '../support/emulated-gpu.ts';
import { expectValues, numbersOf, stridedOf, tensorOf, travelling } from './values.ts';

// Every collective and dtype through NCCL on real GPUs, or through its stand-in, on a GPU emulated on the CPU whose
// streams run in any order that events allow: a missing wait shows as a wrong value.

const isReal = process.argv.includes('real');
const emulated = isReal ? null : openEmulatedGpu(Number(process.env['RANK']) + 7);
const group = await initProcessGroup({
  backend: 'nccl',
  checkCalls: true,
  // Kernels of the emulated GPU may first have to be compiled, which takes a busy machine a while.
  timeoutMs: 300_000,
  ...(emulated && { device: emulated.device }),
});
const device = group.device!;
const { rank, size } = group;
const everyone = Array.from({ length: size }, (_, i) => i);
const right = (rank + 1) % size;
const left = (rank + size - 1) % size;

const onGpu = (values: readonly number[], dtype: DType): Tensor =>
  toDevice(tensorOf(values, [values.length], dtype), device);
const empty = (length: number, dtype: DType): Tensor => toDevice(zeros([length], { dtype }), device);

const folds: Readonly<Record<Exclude<Reduction, 'average'>, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  product: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
};

function reduced(op: Reduction, length: number, dtype: DType): number[] {
  const parts = everyone.map((member) => numbersOf(member, length));
  const fold = folds[op === 'average' ? 'sum' : op];
  const values = Array.from({ length }, (_, i) => parts.map((part) => part[i]!).reduce((a, b) => fold(a, b)));
  if (op !== 'average') return values;
  return tensor(
    values.map((value) => value / size),
    { dtype },
  ).toFlatArray();
}

function checkReductions(dtype: DType): void {
  const ops = (['sum', 'product', 'min', 'max', 'average'] as const).filter(
    (op) => op !== 'average' || isFloatingPoint(dtype),
  );
  for (const op of ops) {
    const own = numbersOf(rank, 12);
    const expected = reduced(op, 12, dtype);
    const inPlace = onGpu(own, dtype);
    group.allReduce(inPlace, { op }).wait();
    expectValues(`allReduce in place, ${op} of ${dtype}`, inPlace, expected);
    const output = empty(12, dtype);
    group.allReduce(onGpu(own, dtype), { op, output }).wait();
    expectValues(`allReduce, ${op} of ${dtype}`, output, expected);
    const toRoot = onGpu(own, dtype);
    group.reduce(toRoot, size - 1, { op }).wait();
    expectValues(`reduce, ${op} of ${dtype}`, toRoot, rank === size - 1 ? expected : own);
    const piece = empty(5, dtype);
    group.reduceScatter(piece, onGpu(numbersOf(rank, 5 * size), dtype), { op }).wait();
    const whole = reduced(op, 5 * size, dtype);
    expectValues(`reduceScatter, ${op} of ${dtype}`, piece, whole.slice(rank * 5, (rank + 1) * 5));
  }
}

function checkMoves(dtype: DType): void {
  const own = numbersOf(rank, 6);
  const all = everyone.flatMap((member) => numbersOf(member, 6));
  for (const from of everyone) {
    const x = rank === from ? onGpu(own, dtype) : empty(6, dtype);
    group.broadcast(x, from).wait();
    expectValues(`broadcast of ${dtype} from ${from}`, x, numbersOf(from, 6));
  }
  const gathered = empty(6 * size, dtype);
  group.allGather(gathered, onGpu(own, dtype)).wait();
  expectValues(`allGather of ${dtype}`, gathered, all);
  const placed = onGpu(
    everyone.flatMap((member) => (member === rank ? own : Array<number>(6).fill(9))),
    dtype,
  );
  group.allGather(placed, slice(placed, 0, rank * 6, (rank + 1) * 6)).wait();
  expectValues(`allGather of ${dtype} in place`, placed, all);
  const exchanged = empty(4 * size, dtype);
  group.allToAll(exchanged, onGpu(numbersOf(rank, 4 * size), dtype)).wait();
  expectValues(
    `allToAll of ${dtype}`,
    exchanged,
    everyone.flatMap((member) => numbersOf(member, 4 * size).slice(rank * 4, (rank + 1) * 4)),
  );
  const onRoot = rank === 0 ? empty(6 * size, dtype) : null;
  group.gather(onRoot, onGpu(own, dtype), 0).wait();
  if (onRoot) expectValues(`gather of ${dtype}`, onRoot, all);
  const scattered = empty(6, dtype);
  group.scatter(scattered, rank === 0 ? onGpu(all, dtype) : null, 0).wait();
  expectValues(`scatter of ${dtype}`, scattered, own);
  if (size === 1) return;
  const received = empty(6, dtype);
  group
    .coalesce(() => {
      group.send(onGpu(own, dtype), right);
      group.recv(received, left);
    })
    .wait();
  expectValues(`send and recv of ${dtype}`, received, numbersOf(left, 6));
}

/** A view travels as a copy that comes back after the call, on the stream of ops. */
function checkStrided(): void {
  const own = numbersOf(rank, 12);
  const wide = toDevice(stridedOf(own, [3, 4], 'float32'), device);
  const strided = slice(toDevice(tensorOf(Array(24).fill(0), [3, 8], 'float32'), device), 1, 0, 8, 2);
  group.allReduce(wide, { output: strided }).wait();
  expectValues('allReduce into a view', strided, reduced('sum', 12, 'float32'));
}

/** Works on the compute stream before and after, and memory that is disposed at once. */
async function checkStreams(): Promise<void> {
  const works = Array.from({ length: 30 }, (_, i) => {
    const x = onGpu([rank + i, i], 'float32');
    const work = group.allReduce(x);
    ok(isReal || !work.isDone || size === 1, 'a work is not done before its stream has run');
    return { x, i, work };
  });
  for (const { x, i, work } of works) {
    work.wait();
    expectValues('many at once', x, [everyone.reduce((sum, member) => sum + member + i, 0), i * size]);
  }
  const lost = onGpu([1, 2], 'float32');
  const { storage } = lost;
  const work = group.allReduce(lost);
  lost.dispose();
  ok(storage.references > 0, 'a work holds its storage');
  await work.done;
  deepStrictEqual([storage.references, work.isDone], [0, true], 'and lets go of it');
}

async function checkCoalesced(): Promise<void> {
  const [a, b] = [onGpu(numbersOf(rank, 3), 'float32'), onGpu(numbersOf(rank, 5), 'int64')];
  const before = emulated?.nccl.log().length ?? 0;
  await group.coalesce(() => {
    group.allReduce(a);
    group.allReduce(b, { op: 'max' });
  }).done;
  expectValues('the first of two', a, reduced('sum', 3, 'float32'));
  expectValues('the second of two', b, reduced('max', 5, 'int64'));
  if (!emulated) return;
  deepStrictEqual(
    emulated.nccl
      .log()
      .slice(before)
      .replaceAll(/ stream \d+/g, ''),
    'AllReduce 3 dtype 7 op 0 peer -1 grouped\nAllReduce 5 dtype 4 op 2 peer -1 grouped\n',
  );
}

async function checkGroups(): Promise<void> {
  const members = everyone.filter((member) => member % 2 === rank % 2);
  for (const round of [0, 1]) {
    const half = await group.subGroup(members);
    deepStrictEqual(half.device, device);
    const x = onGpu([rank + round], 'float64');
    half.allReduce(x).wait();
    expectValues('half', x, [members.reduce((sum, member) => sum + member + round, 0)]);
    half.dispose();
  }
  const objects = await group.allGatherObject({ rank, text: 'x'.repeat(rank * 7) });
  deepStrictEqual(
    objects,
    everyone.map((member) => ({ rank: member, text: 'x'.repeat(member * 7) })),
  );
}

/** What a program has made is reduced while the program runs on. */
function checkCompiled(): void {
  const weight = toDevice(tensor([2, 3]), device).requiresGrad_();
  const step = compile((x: Tensor) => {
    weight.grad?.dispose();
    weight.grad = null;
    const product = mul(x, weight);
    backward(sum(product));
    return product.detach();
  });
  const total = everyone.reduce((a, b) => a + b, 0);
  for (let i = 0; i < 6; i++) {
    const result = step(onGpu([rank, i], 'float32'));
    const gradient = weight.grad!.detach();
    const works = [group.allReduce(result), group.allReduce(gradient)];
    step(onGpu([9, 9], 'float32')).dispose();
    for (const work of works) work.wait();
    expectValues('the result of a program', result, [2 * total, 3 * i * size]);
    expectValues('a gradient of a program', gradient, [total, i * size]);
    expectValues('the gradient after it', weight.grad!, [9, 9]);
  }
  step.dispose();
}

/** Calls among the ops and alongside them in turn, on several streams of ops. */
function checkInterleaved(): void {
  const other = (device as CudaDevice).createStream();
  const x = onGpu([rank, 1], 'float32');
  let expected = [rank, 1];
  for (let round = 0; round < 6; round++) {
    const call = () => group.allReduce(x).wait();
    const among = () => group.onCurrentStream(call);
    if (round % 3 === 0) call();
    else if (round % 3 === 1) among();
    else {
      const ready = (device as CudaDevice).recordEvent({ timing: false });
      other.waitFor(ready);
      (device as CudaDevice).onStream(other, among);
      (device as CudaDevice).stream.waitFor(other.recordEvent({ timing: false }));
    }
    expected =
      round === 0 ? [everyone.reduce((a, b) => a + b, 0), size] : expected.map((value) => value * size);
  }
  expectValues('calls on several streams', x, expected);
  // Nothing waits in between: they run in one order on all ranks nevertheless.
  for (let round = 0; round < 10; round++) {
    const [beside, among] = [onGpu([rank, round], 'float32'), onGpu([rank, round, 1], 'float64')];
    const works = [
      group.allReduce(beside),
      group.onCurrentStream(() => group.allReduce(among, { op: 'max' })),
    ];
    for (const work of works) work.wait();
    expectValues('beside', beside, [everyone.reduce((a, b) => a + b, 0), round * size]);
    expectValues('among', among, [size - 1, round, 1]);
  }
  throws(() => group.onCurrentStream(async () => {}), /is async/);
  throws(() => group.onCurrentStream(null as never), /a function/);
}

for (const dtype of travelling) {
  checkReductions(dtype);
  checkMoves(dtype);
}
checkStrided();
const logged = emulated?.nccl.log().length ?? 0;
group.onCurrentStream(() => {
  checkReductions('float32');
  checkMoves('bfloat16');
  checkStrided();
});
if (emulated) {
  const streams = [
    ...emulated.nccl
      .log()
      .slice(logged)
      .matchAll(/stream (\d+)/g),
  ].map(([, stream]) => Number(stream));
  ok(streams.length > 0 && streams.every((stream) => stream === emulated.device.stream.handle));
}
const among = emulated?.nccl.log().length ?? 0;
checkCompiled();
await checkStreams();
await checkCoalesced();
await checkGroups();
const nothing = empty(0, 'float32');
group.allReduce(nothing).wait();
deepStrictEqual(select(toDevice(zeros([1, 0]), device), 0, 0).size, 0);
if (emulated) {
  const log = emulated.nccl.log();
  match(log, /AllReduce 12 dtype 7 op 0/);
  // All other calls go to a stream that is not that of ops.
  const beside = log.slice(0, logged) + log.slice(among);
  const streams = new Set([...beside.matchAll(/stream (\d+)/g)].map(([, stream]) => Number(stream)));
  ok(!streams.has(emulated.device.stream.handle));
}
checkInterleaved();
group.barrier().wait();
group.dispose();
deepStrictEqual(emulated?.nccl.faults() ?? '', '');
console.log('all right');
