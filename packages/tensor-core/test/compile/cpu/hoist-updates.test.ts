import { describe, expect, it, test } from 'vitest';
import {
  type Tensor,
  add,
  compile,
  defineOp,
  device,
  embedding,
  matmul,
  mul,
  noGrad,
  sum,
  swiglu,
  tensor,
  uniform,
} from '../../../src/index.ts';
import { apply } from '../../../src/op/apply.ts';
import { hoistUpdates } from '../../../src/compile/cpu/hoist-updates.ts';
import { opNames, graphOf } from '../traced-graph.ts';

/** parameter - gradient / 8, in place and piece by piece, like an optimizer's update. */
const descend = defineOp<undefined>({
  name: 'descend',
  autocast: 'none',
  infer: ([parameter]) => [parameter!],
  mutates: [0],
  cuda: { kind: 'custom', launch() {} },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build: (graph, [parameter, gradient]) => [
      graph.node('Sub', [parameter!, graph.node('Mul', [gradient!, graph.scalar('float32', 1 / 8)])]),
    ],
  },
});

const update = (parameter: Tensor, gradient: Tensor) => {
  noGrad(() => apply(descend, [parameter, gradient], undefined)).forEach((output) => output.dispose());
};

/** The names of the ops of `fn`, in the order of a schedule with a step for each call. */
function order(fn: () => readonly Tensor[]): string[] {
  const { graph } = graphOf(fn);
  const steps = graph.calls.map((call) => ({ calls: [call] }));
  const isUpdate = ({ calls: [call] }: (typeof steps)[number]) => call!.op === (descend as never);
  const calls = hoistUpdates(steps, graph.storages, isUpdate).flatMap((step) => step.calls);
  return opNames({ ...graph, calls });
}

describe('the order of updates', () => {
  it('is that of their gradients', () => {
    const [w, v] = [uniform([4]), uniform([4])];
    const names = order(() => {
      const first = mul(w, 2);
      const second = add(v, 2);
      update(w, first);
      update(v, second);
      return [];
    });
    expect(names).toEqual(['mul', 'descend', 'add', 'descend']);
  });

  it('lets a reader of a parameter before its update read the old one', () => {
    const w = uniform([4]);
    const names = order(() => {
      const gradient = mul(w, 2);
      const last = add(w, 1);
      update(w, gradient);
      return [last];
    });
    expect(names).toEqual(['mul', 'add', 'descend']);
  });

  it('keeps two updates of one tensor in their order, and what reads between them', () => {
    const w = uniform([4]);
    const names = order(() => {
      const [first, second] = [mul(w, 2), mul(w, 3)];
      update(w, first);
      const between = add(w, 1);
      update(w, second);
      return [between];
    });
    expect(names).toEqual(['mul', 'mul', 'descend', 'add', 'descend']);
  });

  it('is never before a step that may throw', () => {
    const [w, rows] = [uniform([4]), uniform([3, 2])];
    const ids = tensor([0, 2], { dtype: 'int64' });
    const names = order(() => {
      const gradient = mul(w, 2);
      const read = embedding(rows, ids);
      update(w, gradient);
      return [read];
    });
    expect(names).toEqual(['mul', 'embedding', 'descend']);
  });
});

describe('a compiled step', () => {
  it('refuses an argument that is a view of a parameter, before it updates the parameter', () => {
    const w = tensor([1, 2, 3, 4]).requiresGrad_();
    const compiled = compile((x: Tensor) => {
      const gradient = mul(w.detach(), 2);
      const before = swiglu(x, gradient);
      update(w, gradient);
      return { before, behind: add(x, 0) };
    });
    const other = compiled(tensor([1, 2, 3, 4]));
    expect(other.behind.toArray()).toEqual([1, 2, 3, 4]);
    const updated = w.toArray();
    expect(() => compiled(w.detach())).toThrow(/shares memory with another tensor of the function/);
    expect(w.toArray()).toEqual(updated);
  });

  it('leaves parameters alone where an id is out of range', () => {
    const w = tensor([[1], [2], [3]]);
    const step = compile((ids: Tensor) => {
      const gradient = mul(w, 2);
      const read = embedding(gradient, ids);
      update(w, gradient);
      return read;
    });
    step(tensor([0, 1], { dtype: 'int64' }));
    expect(() => step(tensor([0, 3], { dtype: 'int64' }))).toThrow(/embedding/);
    expect(w.toArray()).toEqual([[0.75], [1.5], [2.25]]);
  });
});

test('gradients make room for each other', () => {
  const [layers, width] = [8, 512];
  const weights = Array.from({ length: layers }, () => uniform([width, width], { requiresGrad: true }));
  const x = uniform([2, width]);
  const step = compile(() => {
    // swiglu runs separately, between graphs.
    const loss = sum(weights.reduce((y, w) => swiglu(matmul(y, w), y), x));
    loss.backward();
    for (const w of weights) update(w, w.grad!);
    for (const w of weights) {
      w.grad!.dispose();
      w.grad = null;
    }
    return loss.detach();
  });
  step().dispose();
  const cpu = device('cpu');
  const before = cpu.memoryStatistics().allocatedBytes;
  cpu.resetPeakMemory();
  step().dispose();
  expect(cpu.memoryStatistics().peakAllocatedBytes - before).toBeLessThan(3 * weights[0]!.byteLength);
});
