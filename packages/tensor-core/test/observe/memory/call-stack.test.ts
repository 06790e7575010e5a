import { setFlagsFromString } from 'node:v8';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

const made = ({ allocations }: t.MemoryRecord) => allocations.filter(({ startUs }) => startUs !== null);
const names = (stack: readonly t.StackFrame[]) => stack.map(({ name }) => name.split('.').at(-1));

function below<T>(calls: number, fn: () => T): T {
  return calls === 0 ? fn() : below(calls - 1, fn);
}

describe('the calls of an allocation', () => {
  it('are the innermost ones, then those that opened its phase', () => {
    using x = t.ones([4]);
    const record = t.recordMemory(
      () => {
        (function epoch() {
          t.range('forward', () =>
            below(30, () =>
              (function layer() {
                t.exp(x).dispose();
              })(),
            ),
          );
        })();
      },
      { stackDepth: 16 },
    );
    const found = names(made(record)[0]!.stack);
    expect(found[0]).toBe('layer');
    expect(found).toContain('epoch');
    expect(found.filter((name) => name === 'below').length).toBeLessThan(16);
  });

  it('list each call once where they reach all the way', () => {
    using x = t.ones([4]);
    const record = t.recordMemory(
      function epoch() {
        t.range('forward', () => t.exp(x).dispose());
      },
      { stackDepth: 100 },
    );
    const found = names(made(record)[0]!.stack);
    expect(found.filter((name) => name === 'epoch')).toHaveLength(1);
  });

  it('outside of phases end with those that began the recording', () => {
    using x = t.ones([4]);
    const record = (function experiment() {
      return t.recordMemory(() => below(30, () => t.exp(x).dispose()));
    })();
    expect(names(made(record)[0]!.stack)).toContain('experiment');
  });

  it('are those of the phase throughout the backward pass', () => {
    using w = t.ones([4]).requiresGrad_();
    const record = t.recordMemory(() =>
      t.scope(() => {
        const loss = t.range('forward', () => t.sum(t.mul(t.exp(w), w)));
        (function train() {
          t.range('backward', () => loss.backward());
        })();
      }),
    );
    const backward = made(record).filter(({ phase }) => phase === 'backward');
    expect(backward.length).toBeGreaterThan(1);
    expect(names(backward[0]!.stack)).toContain('train');
    expect(new Set(backward.map(({ stack }) => stack)).size).toBe(1);
  });

  it('are left out at a depth of 0', () => {
    using x = t.ones([4]);
    const record = t.recordMemory(() => t.exp(x).dispose(), { stackDepth: 0 });
    expect(made(record)[0]).toMatchObject({ op: 'exp', stack: [] });
  });

  it('are distinguished from those that began the recording where they share a line', () => {
    using x = t.ones([4]);
    const layer = (run: () => void) => run();
    // prettier-ignore
    const record = (() => t.recordMemory(() => layer(() => layer(() => t.exp(x).dispose()))))();
    expect(names(made(record)[0]!.stack).filter((name) => name === 'layer')).toHaveLength(2);
  });

  it('have their whole paths where those hold parentheses', () => {
    using x = t.ones([4]);
    const filename = '/home/user/step (copy) (2)/train.cjs';
    const code = '(run) => { const inner = () => run();\ninner(); }';
    const train = runInNewContext(code, {}, { filename }) as (run: () => void) => void;
    const record = t.recordMemory(() => train(() => t.exp(x).dispose()));
    const frames = made(record)[0]!.stack.filter(({ file }) => file.endsWith('train.cjs'));
    expect(frames).toEqual([
      { name: 'inner', file: filename, line: 1 },
      { name: '<anonymous>', file: filename, line: 2 },
    ]);
  });

  it('keep nothing alive that was called on', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    class Layer {
      forward(x: t.Tensor) {
        t.exp(x).dispose();
      }
    }
    using x = t.ones([4]);
    let called: WeakRef<Layer> | null = null;
    const record = t.recordMemory(() => {
      const layer = new Layer();
      called = new WeakRef(layer);
      layer.forward(x);
    });
    await turnOfTheEventLoop();
    collect();
    expect(names(made(record)[0]!.stack)).toContain('forward');
    expect(called!.deref()).toBeUndefined();
  });
});
