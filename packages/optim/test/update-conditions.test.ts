import { type Tensor, cast, empty, exp, keep, mul, neg, softmax, sum, zeros } from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import type { Graph } from '../../tensor-core/src/compile/graph/graph.ts';
import { carryLowPrecisionCopies } from '../../tensor-core/src/compile/passes/carry-low-precision-copies.ts';
import { scaleInUpdate } from '../../tensor-core/src/compile/passes/scale-in-update.ts';
import { updateEarly } from '../../tensor-core/src/compile/passes/update-early.ts';
import { NotedOrder, tell } from '../../tensor-core/test/compile/ordered-effects-op.ts';
import { namesAfter } from '../../tensor-core/test/compile/passes/names-after.ts';
import { graphOf } from '../../tensor-core/test/compile/traced-graph.ts';
import { SGD, clipGradientNorm } from '../src/index.ts';

// What random programs do not meet: one condition of a pass that decides, on a GPU that calculates nothing.
describe('passes of updates, where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = () => zeros([4, 4], { device });
  const [w1, w2] = [tensor().requiresGrad_(), tensor().requiresGrad_()];
  const [g1, g2, x] = [tensor(), tensor(), tensor()];
  const order = new NotedOrder();
  const optimizer = new SGD([w1, w2], { learningRate: 0.1 });
  const apart = [w1, w2].map((w) => new SGD([w], { learningRate: 0.1 }));
  /** Gradients of both, 64 bytes each, and what comes before the step that they are for. */
  const step = (between: () => readonly Tensor[], first = () => neg(g1), second = () => neg(g2)) => {
    w1.grad = keep(first());
    w2.grad = keep(second());
    const made = between();
    optimizer.step();
    for (const w of [w1, w2]) w.grad = null;
    return made;
  };
  const idle = () => [softmax(x, -1)];

  /** A gradient that others reduce, then something that they give, which is used. */
  const gathering = (speed: string) => () => {
    w1.grad = keep(tell(neg(g1), order, speed));
    const used = exp(softmax(tell(x, order), -1));
    w2.grad = keep(neg(g2));
    const made = [used, ...idle()];
    optimizer.step();
    for (const w of [w1, w2]) w.grad = null;
    return made;
  };

  describe('updateEarly', () => {
    const early = (fn: () => readonly Tensor[], l2Bytes = 128) =>
      namesAfter(device, (graph) => updateEarly(graph, { ...device.facts, l2Bytes }), fn)
        .filter((name) => name !== 'sgd_coefficients')
        .join(' ');
    it.each<[string, string, () => readonly Tensor[], number?]>([
      ['updates each behind its gradient', 'neg sgd neg sgd softmax', () => step(idle)],
      ['both together where they are as much as is wanted', 'neg neg sgd softmax', () => step(idle), 256],
      ['none where they are less', 'neg neg softmax sgd', () => step(idle), 258],
      [
        'both together behind what is ready last, be it the gradient of the first',
        'neg neg sgd softmax',
        () => {
          w2.grad = keep(neg(g2));
          const last = neg(g1);
          return step(
            idle,
            () => last,
            () => w2.grad!,
          );
        },
        256,
      ],
      [
        'those of two optimizers behind the same call',
        'neg neg mul sgd sgd softmax',
        () => {
          w1.grad = keep(neg(g1));
          w2.grad = keep(neg(g2));
          const made = [mul(w1.detach(), w2.detach()), ...idle()];
          for (const each of apart) each.step();
          for (const w of [w1, w2]) w.grad = null;
          return made;
        },
      ],
      [
        'both together where both are ready at once',
        'neg neg mul sgd softmax',
        () => step(() => [mul(w1.detach(), w2.detach()), ...idle()]),
      ],
      ['not what is ready only just before', 'neg sgd neg sgd', () => step(() => [])],
      [
        'not by gradients that are not made here',
        'softmax sgd',
        () =>
          step(
            idle,
            () => g1,
            () => g2,
          ),
      ],
      ['not where one is kept', 'neg neg sgd softmax sgd', () => step(() => [...idle(), w1.grad!])],
      [
        'not where one is read behind the step',
        'neg neg sgd softmax sgd mul',
        () => {
          const kept: Tensor[] = [];
          const made = step(() => {
            kept.push(w1.grad!);
            return idle();
          });
          return [...made, mul(kept[0]!, 2)];
        },
      ],
      [
        'not before its parameter is read',
        'neg neg sgd mul sgd softmax',
        () => step(() => [mul(w1.detach(), 2), ...idle()]),
      ],
      [
        'what others reduce, beside what follows, once the next reduction begins: by then it is there; the last at the end',
        'neg tell neg tell sgd softmax sgd',
        () =>
          step(
            idle,
            () => tell(neg(g1), order),
            () => tell(neg(g2), order),
          ),
      ],
      [
        'what stays, in halves by what others reduce: the first while the rest is on its way',
        'neg tell neg tell softmax sgd sgd',
        () =>
          step(
            () => [...idle(), w1.grad!, w2.grad!],
            () => tell(neg(g1), order),
            () => tell(neg(g2), order),
          ),
      ],
      [
        'what stays together where one call reduces it',
        'neg tell softmax sgd',
        () => {
          const both = tell(neg(g1), order);
          return step(
            () => [...idle(), w1.grad!, w2.grad!],
            () => both,
            () => both,
          );
        },
      ],
      [
        'where something else waits for the next one, then',
        'neg tell tell softmax sgd exp neg sgd softmax',
        gathering('slow'),
      ],
      [
        'or when others have run for as long',
        'neg tell tell sgd softmax exp neg sgd softmax',
        gathering('fast'),
      ],
      [
        'not before what says whether it is done',
        'neg neg sum sgd softmax',
        () => {
          w1.grad = keep(neg(g1));
          w2.grad = keep(neg(g2));
          const skip = sum(x);
          const made = idle();
          optimizer.stepUnless(skip);
          for (const w of [w1, w2]) w.grad = null;
          return made;
        },
      ],
    ])('%s', (_, expected, fn, l2Bytes) => {
      expect(early(fn, l2Bytes)).toBe(expected);
    });

    it.each<[string, string, (low: Tensor) => Tensor]>([
      ['a parameter', 'neg neg softmax mul sgd softmax', () => mul(w1.detach(), 2)],
      ['a copy of one, which the update writes', 'neg neg softmax exp sgd softmax', (low) => exp(low)],
    ])('leaves %s for who reads it before the step', (_, expected, read) => {
      const carried = (graph: Graph) =>
        updateEarly(carryLowPrecisionCopies(graph), { ...device.facts, l2Bytes: 256 });
      const names = namesAfter(device, carried, () => {
        const low = cast(w1, 'bfloat16');
        return step(() => [softmax(low, -1), read(low), ...idle()]);
      });
      expect(names.filter((name) => name !== 'sgd_coefficients').join(' ')).toBe(expected);
    });
    const unmade = () => empty([4, 4], { device });
    it.each<[string, () => readonly Tensor[]]>([
      ['all is ready only just before', () => step(() => [])],
      ['no call has made the gradients', () => step(idle, unmade, unmade)],
    ])('leaves an update as it is where %s', (_, fn) => {
      const { graph } = graphOf(fn);
      expect(updateEarly(graph, { ...device.facts, l2Bytes: 256 }).calls).toEqual(graph.calls);
    });
  });

  describe('scaleInUpdate', () => {
    const scaled = (fn: () => readonly Tensor[]) =>
      namesAfter(device, scaleInUpdate, fn).some((name) => name.endsWith('_factor'));
    const clip =
      (clipped: readonly Tensor[] = [w1, w2], after: () => readonly Tensor[] = () => []) =>
      () => {
        clipGradientNorm(clipped, 1);
        return after();
      };
    it.each<[string, boolean, () => readonly Tensor[]]>([
      ['multiplies in the update', true, () => step(clip())],
      ['not a gradient that stays', false, () => step(clip([w1, w2], () => [w1.grad!]))],
      ['not one that others read', false, () => step(clip([w1, w2], () => [neg(w2.grad!)]))],
      [
        'also what others have read before',
        true,
        () =>
          step(() => {
            const before = neg(w1.grad!);
            return [...clip()(), before];
          }),
      ],
      ['not where another gradient is not multiplied', false, () => step(clip([w1]))],
      [
        'not where nothing is updated',
        false,
        () => {
          w1.grad = keep(neg(g1));
          clipGradientNorm([w1], 1);
          w1.grad = null;
          return idle();
        },
      ],
      ['of what is clipped twice the last time', true, () => step(() => [...clip()(), ...clip()()])],
    ])('%s', (_, expected, fn) => {
      expect(scaled(fn)).toBe(expected);
    });
  });
});
