import { afterEach, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { describeOnDevices } from '../op-cases/support/devices.ts';

type Loss = (leaves: readonly t.Tensor[]) => t.Tensor;

/** The names of the ops that ran while `fn` did. */
function opsOf(fn: () => void): string[] {
  const names: string[] = [];
  const stop = t.observeOps({ before: ({ name }) => void names.push(name) });
  try {
    fn();
  } finally {
    stop();
  }
  return names;
}

const sizeOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

describeOnDevices((open) => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  const counting = (...shape: number[]) =>
    t.reshape(t.arange(1, sizeOf(shape) + 1, 1, { device: open(), dtype: 'float32' }), shape);
  /** Leaves of these shapes and, for their gradients, slices of a flat buffer of NaN, each aligned to 16 bytes. */
  const leavesOf = (...shapes: number[][]) => {
    const starts = [0];
    for (const shape of shapes) starts.push(starts.at(-1)! + 4 * Math.ceil(sizeOf(shape) / 4));
    const flat = t.full([starts.pop()!], NaN, { device: open() });
    const leaves = shapes.map((shape, i) => {
      const leaf = counting(...shape).requiresGrad_();
      leaf.setGradientBuffer(t.view(t.slice(flat, 0, starts[i]!, starts[i]! + leaf.size), shape));
      return leaf;
    });
    return { flat, leaves };
  };
  const forget = (...leaves: t.Tensor[]) => {
    for (const leaf of leaves) {
      leaf.grad?.dispose();
      leaf.grad = null;
    }
  };
  const copiesOf = (leaf: t.Tensor) => {
    const copies: boolean[] = [];
    stops.push(leaf.onGradientAccumulated((_, wasCopied) => copies.push(wasCopied)));
    return copies;
  };
  const gradientsOf = (leaves: readonly t.Tensor[]) => leaves.map(({ grad }) => grad!.toFlatArray());
  /** The gradients of leaves like these without buffers. */
  const expectedOf = (leaves: readonly t.Tensor[], loss: Loss) => {
    const plain = leaves.map((leaf) => t.noGrad(() => t.copy(leaf)).requiresGrad_());
    loss(plain).backward();
    return gradientsOf(plain);
  };
  /** Which ops a backward pass of `loss` runs; expects its gradients to be right and in the buffer. */
  const opsInto = (flat: t.Tensor, leaves: readonly t.Tensor[], loss: Loss) => {
    const expected = expectedOf(leaves, loss);
    const result = loss(leaves);
    const ran = opsOf(() => result.backward());
    expect(gradientsOf(leaves)).toEqual(expected);
    for (const { grad } of leaves) expect(grad!.storage).toBe(flat.storage);
    return ran;
  };
  const rows = (weight: t.Tensor, ...ids: number[]) =>
    t.embedding(weight, t.tensor(ids, { device: open(), dtype: 'int64' }));
  /** A loss of a leaf [3, 4]. */
  const lookup: Loss = ([weight]) => t.sum(t.mul(rows(weight!, 0, 2, 2), counting(3, 4)));
  const writes = (names: readonly string[]) => names.filter((name) => /^(copy_?|add_)$/.test(name));

  it('embeddings and norms write gradients into their buffers, without a fill, an add or a copy', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([5, 4], [4], [4], [4]);
      const loss: Loss = ([table, gain, scale, bias]) => {
        const y = t.layerNorm(t.rmsNorm(rows(table!, 0, 4, 4), gain!), scale!, bias!);
        return t.sum(t.mul(y, counting(3, 4)));
      };
      expect(writes(opsInto(flat, leaves, loss))).toEqual([]);
      // The next step writes over what is there; another pass before it adds.
      forget(...leaves);
      expect(writes(opsInto(flat, leaves, loss))).toEqual([]);
      const once = gradientsOf(leaves);
      loss(leaves).backward();
      expect(gradientsOf(leaves)).toEqual(once.map((values) => values.map((value) => 2 * value)));
    });
  });

  it('a second use adds to the first, and once more where the graph is retained', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([3, 4]);
      const [weight] = leaves as [t.Tensor];
      const copies = copiesOf(weight);
      const twice: Loss = ([w]) => t.sum(t.mul(rows(w!, 0, 1), t.mul(rows(w!, 1, 2), counting(2, 4))));
      expect(writes(opsInto(flat, leaves, twice))).toEqual(['add_']);
      forget(weight);
      // The gradient of one of them is made elsewhere, whichever comes first.
      const mixed: Loss = ([w]) => t.add(lookup([w!]), t.sum(t.mul(w!, w!)));
      opsInto(flat, leaves, mixed);
      forget(weight);
      opsInto(flat, leaves, ([w]) => t.add(t.sum(t.mul(w!, w!)), lookup([w!])));
      forget(weight);
      copies.length = 0;
      const retained = twice(leaves);
      retained.backward(undefined, { retainGraph: true });
      const once = weight.grad!.toFlatArray();
      retained.backward();
      expect(weight.grad!.toFlatArray()).toEqual(once.map((value) => 2 * value));
      expect(copies).toEqual([false, false]);
    });
  });

  it('reports what was copied: gradients of other ops, and those whose address is not a multiple of 16 bytes', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([3, 4], [4]);
      const copies = leaves.map(copiesOf);
      const withBias: Loss = ([weight, bias]) =>
        t.sum(t.mul(t.add(rows(weight!, 0, 2), bias!), counting(2, 4)));
      expect(writes(opsInto(flat, leaves, withBias))).toEqual(['copy_']);
      expect(copies).toEqual([[false], [true]]);
      forget(...leaves);
      leaves[0]!.setGradientBuffer(t.view(t.slice(flat, 0, 1, 13), [3, 4]));
      lookup(leaves).backward();
      expect(copies[0]).toEqual([false, true]);
      expect(leaves[0]!.grad!.toFlatArray()).toEqual(expectedOf([leaves[0]!], lookup)[0]);
    });
  });

  it('handles that are dropped, replaced and disposed half-way', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([3, 4]);
      const [weight] = leaves as [t.Tensor];
      const [expected] = expectedOf(leaves, lookup);
      // A handle that the user keeps sees later gradients, because it is one to the buffer.
      lookup(leaves).backward();
      const kept = weight.grad!;
      weight.grad = null;
      lookup(leaves).backward();
      expect(kept.toFlatArray()).toEqual(expected);
      kept.dispose();
      forget(weight);
      // A gradient that the user has set is added to.
      weight.grad = t.keep(t.ones([3, 4], { device: open() }));
      lookup(leaves).backward();
      expect(weight.grad.toFlatArray()).toEqual(expected!.map((value) => value + 1));
      expect(weight.grad.storage).not.toBe(flat.storage);
      forget(weight);
      // Another buffer, in the middle of the pass.
      const other = t.full([3, 4], NaN, { device: open() });
      const trigger = t.ones([1], { device: open() }).requiresGrad_();
      stops.push(trigger.onGradientAccumulated(() => weight.setGradientBuffer(other)));
      t.mul(lookup(leaves), t.sum(trigger)).backward();
      expect(other.toFlatArray()).toEqual(expected);
      forget(weight);
      other.dispose();
      expect(() => lookup(leaves).backward()).toThrow(t.DisposedError);
      weight.setGradientBuffer(null);
      lookup(leaves).backward();
      expect(weight.grad!.toFlatArray()).toEqual(expected);
    });
  });

  it('a pass that fails half-way leaves no gradient, and the next one writes it again', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([4]);
      const [gain] = leaves as [t.Tensor];
      const failing = t.defineFunction<t.Tensor>({
        name: 'failing',
        forward: (_, x) => t.copy(x!),
        backward: () => {
          throw new Error('half-way');
        },
      });
      const bias = counting(4).requiresGrad_();
      const loss: Loss = ([weight]) => t.sum(t.mul(t.rmsNorm(counting(2, 4), weight!), counting(2, 4)));
      // The norm has written the gradient of its gain, which has not arrived, when the op that makes its bias fails.
      const half = t.sum(t.layerNorm(counting(2, 4), gain, failing(bias)));
      const { references } = flat.storage;
      expect(() => half.backward()).toThrow('half-way');
      expect(flat.storage.references).toBe(references);
      expect(gain.grad).toBeNull();
      forget(gain);
      const stop = gain.onGradientAccumulated(() => {
        throw new Error('a hook');
      });
      expect(() => loss(leaves).backward()).toThrow('a hook');
      stop();
      forget(gain);
      expect(writes(opsInto(flat, leaves, loss))).toEqual([]);
    });
  });

  it('a leaf that is frozen or disposed after the forward pass, and memory that a collective works on', () => {
    t.scope(() => {
      const { flat, leaves } = leavesOf([3, 4]);
      const [weight] = leaves as [t.Tensor];
      const other = t.ones([1], { device: open() }).requiresGrad_();
      const frozen = t.mul(lookup(leaves), t.sum(other));
      const nothing = flat.toFlatArray();
      const buffer = t.view(t.slice(flat, 0, 0, 12), [3, 4]);
      weight.requiresGrad_(false);
      frozen.backward();
      expect(weight.grad).toBeNull();
      expect(flat.toFlatArray()).toEqual(nothing);
      weight.requiresGrad_();
      weight.setGradientBuffer(buffer);
      const release = flat.storage.hold({ start: 0, end: 4 }, 'an allReduce');
      expect(() => lookup(leaves).backward()).toThrow('while an allReduce, which is under way');
      expect(flat.toFlatArray()).toEqual(nothing);
      release();
      lookup(leaves).backward();
      expect(gradientsOf(leaves)).toEqual(expectedOf(leaves, lookup));
      const behind = t.mul(lookup(leaves), t.sum(other));
      weight.dispose();
      expect(() => behind.backward()).not.toThrow();
    });
  });

  it('NaN, low precision and empty tensors', () => {
    t.scope(() => {
      const device = open();
      const weight = t.full([2, 2], NaN, { device, dtype: 'bfloat16' }).requiresGrad_();
      const flat = t.full([8], 7, { device, dtype: 'bfloat16' });
      weight.setGradientBuffer(t.view(t.slice(flat, 0, 0, 4), [2, 2]));
      const factors = t.tensor([[1, NaN]], { device, dtype: 'bfloat16' });
      t.sum(t.mul(rows(weight, 1), factors)).backward();
      expect(flat.toFlatArray()).toEqual([0, 0, 1, NaN, 7, 7, 7, 7]);
      const { flat: none, leaves } = leavesOf([3, 0]);
      t.sum(rows(leaves[0]!, 1)).backward();
      expect(leaves[0]!.grad!.storage).toBe(none.storage);
      // Of no rows: zeros replace what was there.
      const { leaves: full } = leavesOf([3, 4]);
      t.sum(rows(full[0]!)).backward();
      expect(full[0]!.grad!.toFlatArray()).toEqual(new Array(12).fill(0));
    });
  });

  it('apply takes a destination as a hint', () => {
    t.scope(() => {
      const device = open();
      const [x, flat] = [counting(2, 2), t.zeros([8], { device })];
      const place = t.view(t.slice(flat, 0, 4, 8), [2, 2]);
      const doubled = t.defineOp({
        name: 'doubled',
        autocast: 'none',
        infer: ([a]) => [a!],
        cuda: { kind: 'pointwise', expressions: () => ['a + a'] },
        cpu: { kind: 'onnx', build: (graph, [a]) => [graph.node('Add', [a!, a!])] },
      });
      const into = (destination: t.Tensor | null, input = x) =>
        t.noGrad(() => t.applyOne(doubled, [input], undefined, destination));
      expect(into(place).storage).toBe(flat.storage);
      expect(flat.toFlatArray()).toEqual([0, 0, 0, 0, 2, 4, 6, 8]);
      // Where it does not fit, an input is there, or the tape would miss it, the output has memory of its own.
      const own = [
        into(null),
        into(t.slice(flat, 0, 0, 4)),
        into(t.transpose(place)),
        into(t.zeros([2, 2], { device, dtype: 'float16' })),
        into(t.view(t.slice(flat, 0, 1, 5), [2, 2])),
        t.applyOne(doubled, [x], undefined, place),
      ];
      for (const output of own) {
        expect(output.storage).not.toBe(flat.storage);
        expect(output.toFlatArray()).toEqual([2, 4, 6, 8]);
      }
      expect(into(place, place).toFlatArray()).toEqual([4, 8, 12, 16]);
      expect(flat.toFlatArray()).toEqual([0, 0, 0, 0, 2, 4, 6, 8]);
    });
  });
});
