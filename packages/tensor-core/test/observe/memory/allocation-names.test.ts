import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const made = ({ allocations }: t.MemoryRecord) => allocations.filter(({ startUs }) => startUs !== null);

describe('the name of an allocation', () => {
  it('is that of the op that made it, not of one that wrote to it later', () => {
    using x = t.ones([4]);
    const record = t.recordMemory(() =>
      t.scope(() => {
        const y = t.exp(x);
        t.addInPlace(y, x);
      }),
    );
    expect(made(record).map(({ op }) => op)).toEqual(['exp']);
  });

  it('is none after an op, where the host makes a tensor', () => {
    using x = t.ones([4]);
    const record = t.recordMemory(() =>
      t.scope(() => {
        t.exp(x);
        t.tensor([1, 2, 3]);
      }),
    );
    expect(made(record).map(({ op, dtype }) => [op, dtype])).toEqual([
      ['exp', 'float32'],
      [null, null],
    ]);
  });

  it('and its calls are those of the op that asks for a workspace, though the op before made its output', () => {
    const device = openEmulatedDevice();
    const host = { kind: 'host' as const, run: () => undefined };
    const output = t.defineOp({
      name: 'output',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: { kind: 'custom', launch: () => undefined },
      cpu: host,
    });
    const working = t.defineOp({
      name: 'working',
      autocast: 'none',
      infer: ([x]) => [x!],
      mutates: [0],
      cuda: { kind: 'custom', launch: (context) => void context.workspace(1000) },
      cpu: host,
    });
    t.scope(() => {
      const x = t.empty([4], { device });
      const record = t.recordMemory(
        () => {
          (function makesOutput() {
            t.applyOne(output, [x], undefined);
          })();
          (function needsWorkspace() {
            t.applyOne(working, [x], undefined);
          })();
        },
        { device },
      );
      const callers = made(record).map(({ kind, op, stack }) => [
        kind,
        op,
        ['makesOutput', 'needsWorkspace'].filter((name) => stack.some((frame) => frame.name.includes(name))),
      ]);
      expect(callers).toEqual([
        ['storage', 'output', ['makesOutput']],
        ['workspace', 'working', ['needsWorkspace']],
      ]);
    });
  });
});

describe('savedForBackward', () => {
  it('leaves out the leaves that a gradient reads', () => {
    t.scope(() => {
      const w = t.ones([3], { requiresGrad: true });
      expect(t.savedForBackward(t.sum(t.mul(w, w)))).toEqual([]);
      const saved = t.savedForBackward(t.mul(t.exp(w), w));
      expect(saved.map(({ op }) => op)).toEqual(['exp']);
    });
  });

  it('lists each op after those whose results it took', () => {
    t.scope(() => {
      const w = t.ones([3], { requiresGrad: true });
      const y = t.tanh(t.exp(w));
      const saved = t.savedForBackward(t.mul(t.sigmoid(y), y));
      expect(saved.map(({ op }) => op)).toEqual(['exp', 'tanh', 'sigmoid']);
    });
  });
});
