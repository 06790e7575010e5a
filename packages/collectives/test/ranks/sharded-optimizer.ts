import { deepStrictEqual, match, ok, rejects, throws } from 'node:assert/strict';
import { type Tensor, device as openDevice, fromTypedArray, full, keep } from '@roofline/tensor-core';
import { AdamW, type OptimizerState, SGD } from '@roofline/optim';
import { CollectiveError, ShardedOptimizer, initProcessGroup } from '@roofline/collectives';

// An optimizer split over the ranks against one that is whole, with the same gradients: every bit must agree.

const [backend = 'gloo'] = process.argv.slice(2);
const group = await initProcessGroup({ backend: backend as 'gloo' | 'nccl' });
const { rank, size } = group;
const device = group.device ?? openDevice('cpu');
const shapes = [[40, 16], [16], [16, 16], [3], [1], [64, 8], []];
const options = { learningRate: 0.1, weightDecay: 0.1 };

/** The last is never given a gradient. */
function makeParameters(count = shapes.length): Tensor[] {
  return shapes.slice(0, count).map((shape, i) => keep(full(shape, i + 1, { device })).requiresGrad_());
}

function groupsOf(parameters: readonly Tensor[]) {
  return [
    { parameters: parameters.slice(0, 2), betas: [0.5, 0.9] as const },
    { parameters: parameters.slice(2) },
  ];
}

function setGradients(parameters: readonly Tensor[], step: number): void {
  parameters.slice(0, -1).forEach((parameter, i) => {
    const values = Float32Array.from({ length: parameter.size }, (_, j) => Math.sin(step + i + j));
    parameter.grad?.dispose();
    parameter.grad = keep(fromTypedArray(values, parameter.shape, { device }));
  });
}

function run(optimizer: { step(): void; parameters(): Tensor[] }, from: number, to: number): void {
  for (let step = from; step < to; step++) {
    setGradients(optimizer.parameters(), step);
    optimizer.step();
  }
}

const valuesOf = (parameters: readonly Tensor[]) => parameters.map((parameter) => parameter.toFlatArray());

function plainOf({ tensors, metadata }: OptimizerState) {
  const values = Object.entries(tensors).map(
    ([name, tensor]) => [name, tensor.shape, tensor.toFlatArray()] as const,
  );
  for (const tensor of Object.values(tensors)) tensor.dispose();
  return { metadata, values: values.sort(([a], [b]) => a.localeCompare(b)) };
}

function disposeAll(parameters: readonly Tensor[]): void {
  for (const parameter of parameters) parameter.dispose();
}

async function checkAdamW(bucketBytes?: number): Promise<void> {
  const [whole, split] = [makeParameters(), makeParameters()];
  const reference = new AdamW(groupsOf(whole), options);
  const sending = bucketBytes === undefined ? {} : { bucketBytes };
  const optimizer = new ShardedOptimizer(groupsOf(split), AdamW, group, options, sending);
  run(reference, 0, 2);
  run(optimizer, 0, 2);
  deepStrictEqual(valuesOf(split), valuesOf(whole));

  // Hyperparameters change between steps: of all, and of one group.
  for (const each of [reference, optimizer]) {
    each.learningRate = 0.05;
    (each.groups[1] as { weightDecay: number }).weightDecay = 0;
  }
  run(reference, 2, 4);
  run(optimizer, 2, 4);
  deepStrictEqual(valuesOf(split), valuesOf(whole));
  deepStrictEqual(optimizer.learningRate, 0.05);

  // Its whole state is that of the whole one, on all ranks and on one.
  const expected = plainOf(reference.stateDict());
  // Of one moment: no step comes between its parts.
  const pending = optimizer.stateDict();
  throws(() => optimizer.step(), {
    code: 'ORDER',
    message: /step: stateDict\(\) is under way; await it first/,
  });
  await rejects(optimizer.stateDict(), { code: 'ORDER' });
  deepStrictEqual(plainOf((await pending)!), expected);
  deepStrictEqual(plainOf((await optimizer.stateDict())!), expected);
  const root = size - 1;
  const onRoot = await optimizer.stateDict({ root });
  deepStrictEqual(onRoot && plainOf(onRoot), rank === root ? expected : null);

  // Another goes on from it: from all ranks, and from one.
  for (const from of [undefined, root]) {
    const continued = makeParameters();
    const other = new ShardedOptimizer(groupsOf(continued), AdamW, group, options, sending);
    for (const each of other.groups) Object.assign(each, { learningRate: 0.05 });
    (other.groups[1] as { weightDecay: number }).weightDecay = 0;
    const state = reference.stateDict();
    // As Python writes lists, and as text that was indented.
    const steps = `\n ${state.metadata.steps!.replaceAll(',', ', ')}`;
    const given = { ...state, metadata: { ...state.metadata, steps } };
    const loading = other.loadStateDict(from === undefined || from === rank ? given : null, { root: from });
    throws(() => other.step(), { message: /step: loadStateDict\(\) is under way; await it first/ });
    await loading;
    disposeAll(Object.values(state.tensors));
    const expectedParameters = makeParameters();
    const again = new AdamW(groupsOf(expectedParameters), { ...options, learningRate: 0.05 });
    (again.groups[1] as { weightDecay: number }).weightDecay = 0;
    const copied = reference.stateDict();
    again.loadStateDict(copied);
    disposeAll(Object.values(copied.tensors));
    run(other, 4, 6);
    run(again, 4, 6);
    deepStrictEqual(valuesOf(continued), valuesOf(expectedParameters));
    for (const each of [other, again]) each.dispose();
    disposeAll([...continued, ...expectedParameters]);
  }

  // What does not fit is refused on all ranks, also where it is one rank's part alone, and changes nothing.
  const { tensors, metadata } = reference.stateDict();
  const wrong = { ...tensors, 'exp_avg.0': full([2], 0, { device }) };
  const refusal = await optimizer
    .loadStateDict({ tensors: wrong, metadata })
    .catch((error: unknown) => error);
  const isOwner = optimizer.ownParameters().includes(split[0]!);
  deepStrictEqual(refusal instanceof CollectiveError, !isOwner);
  match((refusal as Error).message, /"exp_avg\.\d" is \[2\], its parameter \[40, 16\]/);
  const surplus = full([2], 0, { device });
  await rejects(optimizer.loadStateDict({ tensors: { ...tensors, 'exp_avg.99': surplus }, metadata }), {
    message: /"exp_avg.99" is no tensor of one of 7 parameters/,
  });
  // So is what one rank alone gives wrongly, before anything is sent; the others do not wait for it.
  const isOdd = rank === size - 1;
  const good = { tensors, metadata };
  const gone = { ...tensors, 'exp_avg.0': full([40, 16], 0, { device }) };
  gone['exp_avg.0'].dispose();
  const given: [OptimizerState | null, { root?: number }, RegExp][] = [
    [isOdd ? null : good, {}, /must give the state, not null/],
    [isOdd ? ({ tensors } as OptimizerState) : good, {}, /the state's metadata/],
    [size > 1 && (rank === 0 || isOdd) ? good : null, { root: 0 }, /must give/],
    [
      rank === 0 ? ({ tensors: { 'exp_avg.0': 5 }, metadata } as unknown as OptimizerState) : null,
      { root: 0 },
      /tensor/,
    ],
    [rank === 0 ? { tensors: gone, metadata } : null, { root: 0 }, /"exp_avg.0": .* had been disposed/],
  ];
  for (const [own, from, message] of given) {
    const startMs = performance.now();
    await rejects(optimizer.loadStateDict(own, from), message);
    ok(performance.now() - startMs < 10_000, 'at once');
  }
  disposeAll([...Object.values(tensors), wrong['exp_avg.0'], surplus]);
  deepStrictEqual(plainOf((await optimizer.stateDict())!), expected);
  for (const each of [reference, optimizer]) each.dispose();
  disposeAll([...whole, ...split]);
}

/** What a GPU's memory is handed out in multiples of; the CPU counts bytes. */
function blockBytes(byteLength: number): number {
  return device.type === 'cuda' ? 512 * Math.ceil(byteLength / 512) : byteLength;
}

/** A rank holds two float32 moments for each of its elements; its share is even but for one parameter at most. */
function checkMemory(): void {
  const parameters = makeParameters(shapes.length - 1);
  setGradients([...parameters, parameters[0]!], 0);
  const optimizer = new ShardedOptimizer(parameters, AdamW, group, options);
  const before = device.allocatedBytes;
  optimizer.step();
  const own = optimizer.ownParameters().reduce((sum, { byteLength }) => sum + byteLength, 0);
  const held = optimizer.ownParameters().reduce((sum, { byteLength }) => sum + blockBytes(byteLength), 0);
  deepStrictEqual(device.allocatedBytes - before, 2 * held);
  const bytes = parameters.map(({ byteLength }) => byteLength);
  const total = bytes.reduce((sum, each) => sum + each, 0);
  ok(own <= total / size + Math.max(...bytes), `${own} of ${total} bytes`);
  optimizer.dispose();
  deepStrictEqual(device.allocatedBytes, before);
  disposeAll(parameters);
}

/** Fewer parameters than ranks, and a state without any tensor. */
async function checkFew(): Promise<void> {
  for (const momentum of [0, 0.9]) {
    const [whole, split] = [makeParameters(1), makeParameters(1)];
    const reference = new SGD(whole, { learningRate: 0.1, momentum });
    const optimizer = new ShardedOptimizer(split, SGD, group, { learningRate: 0.1, momentum });
    deepStrictEqual(optimizer.ownParameters().length, rank === 0 ? 1 : 0);
    for (const parameter of [...whole, ...split]) parameter.grad = keep(full(parameter.shape, 2, { device }));
    const [yes, no] = [full([], 1, { device }), full([], 0, { device })];
    for (const each of [reference, optimizer]) {
      each.stepUnless(yes);
      each.stepUnless(no);
    }
    disposeAll([yes, no]);
    deepStrictEqual(valuesOf(split), valuesOf(whole));
    const state = (await optimizer.stateDict())!;
    await optimizer.loadStateDict(state);
    deepStrictEqual(plainOf(state), plainOf(reference.stateDict()));
    for (const each of [reference, optimizer]) each.dispose();
    disposeAll([...whole, ...split]);
  }
}

const { liveStorages } = device.memoryStatistics();
await checkAdamW();
// A parameter each.
await checkAdamW(1);
checkMemory();
await checkFew();
deepStrictEqual(device.memoryStatistics().liveStorages, liveStorages);
console.log('all right');
