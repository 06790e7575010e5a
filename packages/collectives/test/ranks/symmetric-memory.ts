import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import {
  type Tensor,
  compile,
  fromTypedArray,
  keep,
  scope,
  slice,
  transpose,
  zeros,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { CollectiveError, makeSymmetric } from '@roofline/collectives';
import { groupOf, place } from './group-of.ts';

// All-reduces in memory that all ranks reach: which calls work there, and that they give what NCCL's do.

const [, , , chosen = ''] = process.argv;
const { group, device, nccl } = await groupOf(chosen === 'absent' ? { timeoutMs: 3000 } : {});
const { rank, size } = group;
const gpu = device as CudaDevice;

let launches = 0;
const kernel = gpu.kernel.bind(gpu);
gpu.kernel = (spec) => {
  if (spec.name === 'two_shot_all_reduce') launches++;
  return kernel(spec);
};

/** Whether `calls` worked in the memory of all ranks, all or none of them. */
function isDirect(calls: () => void): boolean {
  const before = launches;
  calls();
  return launches > before;
}

const values = (of: number, count: number) =>
  Float32Array.from({ length: count }, (_, i) => ((i * 37 + of * 11) % 64) - 20 + of);
const tensorOf = (count: number) => keep(fromTypedArray(values(rank, count), [count], { device }));

/** Of whole numbers, which every order of additions gives. */
function sumOf(count: number, divisor = 1): number[] {
  const sum = new Float32Array(count);
  for (let of = 0; of < size; of++) values(of, count).forEach((value, i) => (sum[i]! += value));
  return Array.from(sum, (value) => Math.fround(value * Math.fround(1 / divisor)));
}

/** Of one rank alone. */
function stridedOf(count: number): Tensor {
  return scope(() => keep(transpose(tensorOf(count).view([2, count / 2]), 0, 1)));
}

function check(count: number, { by = 'kernel', op = 'sum' as 'sum' | 'average' | 'max' } = {}): void {
  const x = tensorOf(count);
  strictEqual(makeSymmetric(group, [x]), true);
  const direct = isDirect(() => group.allReduce(x, { op }).wait());
  if (op !== 'max') deepStrictEqual(x.toFlatArray(), sumOf(count, op === 'average' ? size : 1));
  strictEqual(direct, by === 'kernel', `${count} elements, ${op}`);
  x.dispose();
}

const scenarios: Readonly<Record<string, () => void | Promise<void>>> = {
  sizes() {
    for (const count of [4, 8, 12, 64, 1000, 4100, 40_000, 1 << 18]) check(count);
    check(1000, { op: 'average' });
    check(1001, { by: 'NCCL' });
    check(1000, { by: 'NCCL', op: 'max' });
  },
  'other calls'() {
    const [x, y] = [tensorOf(64), tensorOf(64)];
    makeSymmetric(group, [x]);
    const part = scope(() => keep(slice(x, 0, 0, 32)));
    const whole = keep(zeros([64], { device }));
    // Another's memory, a part, and an output elsewhere.
    for (const call of [
      () => group.allReduce(y).wait(),
      () => group.allReduce(part).wait(),
      () => group.allReduce(x, { output: whole }).wait(),
    ])
      ok(!isDirect(call));
    ok(isDirect(() => group.allReduce(x).wait()));
    for (const tensor of [x, y, part, whole]) tensor.dispose();
  },
  'one after the other, between those of NCCL'() {
    const tensors = [tensorOf(64), tensorOf(4096), tensorOf(256)];
    const other = tensorOf(16);
    makeSymmetric(group, tensors);
    const works = Array.from({ length: 12 }, (_, i) =>
      group.allReduce(i % 4 === 3 ? other : tensors[i % 4]!, { op: i % 4 === 3 ? 'sum' : 'average' }),
    );
    group.onCurrentStream(() => group.allReduce(tensors[0]!, { op: 'average' }).wait());
    for (const work of works) work.wait();
    // The average of what is alike on all ranks stays.
    for (const [i, count] of [64, 4096, 256].entries())
      deepStrictEqual(tensors[i]!.toFlatArray(), sumOf(count, size));
    for (const tensor of [...tensors, other]) tensor.dispose();
  },
  'memory that is gone, and what takes its place'() {
    const x = tensorOf(1 << 20);
    const { address } = x;
    makeSymmetric(group, [x]);
    x.dispose();
    const y = tensorOf(1 << 20);
    // On one rank it lies where the other was, on others it may not.
    if (rank === 0) strictEqual(y.address, address);
    ok(!isDirect(() => group.allReduce(y).wait()));
    deepStrictEqual(y.toFlatArray(), sumOf(1 << 20));
    const z = scope(() => keep(slice(y, 0, 0, 1 << 20)));
    makeSymmetric(group, [z]);
    y.dispose();
    // Another handle keeps the memory.
    ok(isDirect(() => group.allReduce(z).wait()));
    z.dispose();
  },
  'memory that is let go, and brought back elsewhere'() {
    const x = tensorOf(1 << 20);
    const { address, storage } = x;
    makeSymmetric(group, [x]);
    storage.letGo(() => {
      const source = tensorOf(1 << 20);
      storage.moveIn(source.storage);
      source.dispose();
    });
    const y = tensorOf(1 << 20);
    if (rank === 0) strictEqual(y.address, address);
    ok(!isDirect(() => group.allReduce(y).wait()));
    storage.bringBack();
    for (const tensor of [y, x]) ok(!isDirect(() => group.allReduce(tensor, { op: 'average' }).wait()));
    for (const tensor of [x, y]) tensor.dispose();
  },
  'broadcasts together'() {
    const counts = [64, 33, 4096, 1 << 18, 7];
    const tensors = counts.map(tensorOf);
    makeSymmetric(group, tensors);
    const together = (roots: readonly number[]) => () =>
      group.coalesce(() => tensors.forEach((x, i) => void group.broadcast(x, roots[i]!)));
    const roots = counts.map((_, i) => i % size);
    let work = null as ReturnType<typeof group.coalesce> | null;
    ok(isDirect(() => (work = together(roots)())));
    work!.wait();
    tensors.forEach((x, i) => deepStrictEqual(x.toFlatArray(), Array.from(values(roots[i]!, counts[i]!))));
    ok(!isDirect(() => group.broadcast(tensors[0]!, 0).wait()));
    const other = tensorOf(5);
    ok(
      !isDirect(() => {
        const mixed = () => [...tensors, other].forEach((x) => void group.broadcast(x, 1));
        group.coalesce(mixed).wait();
      }),
    );
    deepStrictEqual(other.toFlatArray(), Array.from(values(1, 5)));
    tensors.forEach((x, i) => deepStrictEqual(x.toFlatArray(), Array.from(values(roots[i]!, counts[i]!))));
    for (const x of [...tensors, other]) x.dispose();
  },
  compiled() {
    const x = tensorOf(4096);
    makeSymmetric(group, [x]);
    const step = compile(() => group.allReduce(x, { op: 'average' }).wait());
    const isCaptured = isDirect(() => {
      for (let i = 0; i < 5; i++) step();
    });
    ok(isCaptured);
    deepStrictEqual(x.toFlatArray(), sumOf(4096, size));
    step.dispose();
    x.dispose();
  },
  'not a number'() {
    const x = keep(
      fromTypedArray(Float32Array.of(rank === 1 ? NaN : 1, Infinity, -rank, 0), [4], { device }),
    );
    makeSymmetric(group, [x]);
    group.allReduce(x).wait();
    const sum = (size * (size - 1)) / 2;
    deepStrictEqual(x.toFlatArray(), [NaN, Infinity, -sum, 0]);
    x.dispose();
  },
  'tensors that differ'() {
    const [x, y] = [tensorOf(64), tensorOf(64)];
    const strided = stridedOf(64);
    // Strided on one rank or on all, of another size, and two views of one place.
    for (const tensors of [
      [x, rank === 0 ? strided : y],
      [strided],
      [rank === 0 ? x : tensorOf(32)],
      [x, rank === 1 ? x : y],
    ])
      strictEqual(makeSymmetric(group, tensors), false);
    ok(!isDirect(() => group.allReduce(x).wait()));
    strictEqual(makeSymmetric(group, [x, y, x]), true);
    ok(isDirect(() => group.allReduce(y).wait()));
    for (const tensor of [x, y, strided]) tensor.dispose();
  },
  'one rank shares nothing'() {
    const functions = gpu.parts.driver.functions as unknown as Record<string, () => number>;
    const { cuIpcGetMemHandle } = functions;
    if (rank === 1) functions['cuIpcGetMemHandle'] = () => 801;
    const x = tensorOf(64);
    strictEqual(makeSymmetric(group, [x]), false);
    ok(!isDirect(() => group.allReduce(x).wait()));
    x.dispose();
    functions['cuIpcGetMemHandle'] = cuIpcGetMemHandle!;
    check(64);
  },
  'one rank cannot open'() {
    const functions = gpu.parts.driver.functions as unknown as Record<string, () => number>;
    const { cuIpcOpenMemHandle } = functions;
    if (rank === 0) functions['cuIpcOpenMemHandle'] = () => 217;
    // Nothing that was opened before helps: all of it is new.
    const x: Tensor = tensorOf(1 << 22);
    makeSymmetric(group, [x]);
    ok(!isDirect(() => group.allReduce(x).wait()));
    functions['cuIpcOpenMemHandle'] = cuIpcOpenMemHandle!;
    x.dispose();
  },
  async absent() {
    const x = tensorOf(64);
    makeSymmetric(group, [x]);
    if (rank === 1) return void (await new Promise((resolve) => setTimeout(resolve, 8000)));
    const error = await group.allReduce(x).done.then(
      () => null,
      (reason: unknown) => reason,
    );
    ok(error instanceof CollectiveError);
    match(error.message, /timed out|did not/);
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  if (chosen ? name !== chosen : name === 'absent') continue;
  if (place === 'real' && name.startsWith('one rank')) continue;
  await run();
}
group.dispose();
if (nccl) strictEqual(nccl.faults(), '');
console.log('all right');
