import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { assignBranches } from '../../src/devices/cuda/program/branches/assign-branches.ts';
import { planBranches } from '../../src/devices/cuda/program/branches/branches.ts';
import { dependenciesOf } from '../../src/devices/cuda/program/branches/dependencies.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';
import { programOf } from './traced-program.ts';

/** The calls before each one that it must run behind. */
const behind = (fn: () => readonly t.Tensor[]) =>
  dependenciesOf(programOf(fn).program.calls).map((earlier) => [...earlier].sort());

describe('dependenciesOf', () => {
  it('are reads behind writes, writes behind reads, and writes behind writes', () => {
    const x = t.tensor([1, 2, 3, 4]);
    const found = behind(() => {
      const y = t.add(x, 1);
      const z = t.mul(y, 2);
      t.addInPlace(y, t.neg(x));
      return [y, z, t.neg(y)];
    });
    expect(found).toEqual([[], [0], [], [0, 1, 2], [0, 3]]);
  });

  it('are of elements, not of storages, and see views', () => {
    const x = t.tensor([[1, 2], [3, 4]]); // prettier-ignore
    const found = behind(() => {
      const y = t.add(x, 1);
      const [left, right] = [t.slice(y, 1, 0, 1), t.slice(y, 1, 1, 2)];
      t.addInPlace(left, left);
      t.addInPlace(right, right);
      return [y, t.neg(t.transpose(right, 0, 1)), t.neg(t.expand(left, [2, 2]))];
    });
    expect(found).toEqual([[], [0], [0], [0, 2], [0, 1]]);
  });
});

/** A pass through layers of products and back, as autograd runs it: gradients of inputs and weights in turn. */
function passThrough(layers: number, size: number) {
  const weights = Array.from({ length: layers }, () => t.zeros([size, size], { requiresGrad: true }));
  const x = t.zeros([size, size], { requiresGrad: true });
  return programOf(() => {
    t.backward(t.sum(weights.reduce((y, weight) => t.matmul(y, weight), x as t.Tensor)));
    const results = [x, ...weights].map((leaf) => leaf.grad!);
    return results;
  }).program.calls;
}

describe('assignBranches', () => {
  it('leaves the gradients of inputs on the chain, and those of weights beside it', () => {
    const layers = 8;
    const calls = passThrough(layers, 512);
    const dependencies = dependenciesOf(calls);
    const { ofCalls: branches } = assignBranches(calls, dependencies, 2);
    const products = calls.flatMap(({ op }, i) => (op.name === 'matmul' ? [i] : []));
    const last = calls.length - 1;
    expect(branches.slice(0, products[layers])).toEqual(branches.slice(0, products[layers]).map(() => 0));
    // Nothing of the backward pass needs the gradient of a weight: all but the last ones have time.
    const beside = products.slice(layers).filter((i) => branches[i] === 1);
    expect(beside.length).toBeGreaterThanOrEqual(layers - 2);
    expect(beside.length).toBeLessThanOrEqual(layers);
    const isNeeded = (i: number) => dependencies.some((earlier) => earlier.has(i));
    expect(beside.filter(isNeeded)).toEqual([]);
    expect(branches[last]).toBeDefined();
  });

  it('is a chain for one branch, and where nothing has time', () => {
    const calls = passThrough(6, 64);
    expect(planBranches(calls, 1)).toMatchObject({ count: 1, ofCalls: calls.map(() => 0) });
    const x = t.zeros([512, 512]);
    const chain = programOf(() => [[1, 2, 3, 4].reduce((y) => t.matmul(y, x), x)]).program.calls;
    expect(planBranches(chain, 3)).toMatchObject({ count: 1, ofCalls: [0, 0, 0, 0] });
  });
});

describe.skipIf(hostCompilerVersion() === null)('a program of branches', () => {
  const device = openEmulatedDevice();

  it('says how many there are, and which calls are on which', () => {
    const size = 32;
    const weights = Array.from({ length: 6 }, () => t.ones([size, size], { device, requiresGrad: true }));
    const x = t.ones([size, size], { device, requiresGrad: true });
    const programs = [1, 2].map((branches) =>
      t.compile(
        () => {
          const loss = t.sum(weights.reduce((y, weight) => t.matmul(y, weight), x as t.Tensor));
          for (const leaf of [x, ...weights]) {
            leaf.grad?.dispose();
            leaf.grad = null;
          }
          t.backward(loss);
          return loss.detach();
        },
        { branches },
      ),
    );
    const gradients = programs.map((program) => {
      for (let i = 0; i < 4; i++) program();
      return weights.map(({ grad }) => grad!.toFlatArray());
    });
    expect(gradients[1]).toEqual(gradients[0]);
    const [chain, branched] = programs.map((program) => program.explain().at(-1)!);
    expect(chain).toMatchObject({ branches: 1, callsBeside: 0 });
    expect(branched).toMatchObject({ branches: 2 });
    expect(branched!.callsBeside).toBeGreaterThan(2);
    expect(branched!.table.filter(({ branch }) => branch === 1)).toHaveLength(branched!.callsBeside);
    expect(branched!.nodes).toBe(branched!.table.reduce((sum, { nodes }) => sum + nodes!, 0));
    for (const program of programs) program.dispose();
  });

  it('can be dropped and captured anew, after a failure too', () => {
    const size = 32;
    const weights = Array.from({ length: 6 }, () => t.ones([size, size], { device, requiresGrad: true }));
    const fails = t.defineOp({
      name: 'fails',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch: (context, [x], [y]) => {
          if (isFailing) throw new RangeError('inside');
          context.copy(x!, y!);
        },
      },
      cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
    });
    let isFailing = false;
    const x = t.ones([size, size], { device, requiresGrad: true });
    const step = t.compile(
      () => {
        for (const leaf of [x, ...weights]) {
          leaf.grad?.dispose();
          leaf.grad = null;
        }
        t.backward(t.sum(weights.reduce((y, weight) => t.matmul(y, weight), x as t.Tensor)));
        return t.applyOne(fails, [x.grad!], undefined);
      },
      { branches: 2 },
    );
    while (step.cache.hits === 0 && step.cache.misses < 2) step();
    isFailing = true;
    expect(() => step()).toThrow(new RangeError('inside'));
    isFailing = false;
    const expected = t.sum(step()).item();
    expect(t.sum(step()).item()).toBe(expected);
    expect(step.explain().at(-1)!.branches).toBe(2);
    step.dispose();
    expect(device.memoryStatistics().liveStorages).toBeGreaterThan(0);
  });
});
