import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EmulatedCaptures, type GraphNode, drawOrder } from '../../src/testing/emulated-captures.ts';
import {
  captureIsolation,
  captureUnjoined,
  captureUnmatched,
  capturedEvent,
} from '../../src/testing/emulated-results.ts';

/** A capture on stream 1 that takes in stream 2 behind its first node. */
function forked() {
  const captures = new EmulatedCaptures();
  captures.begin(1);
  captures.add(1, () => undefined);
  expect(captures.join(2, captures.pointOf(1))).toBe(0);
  for (const stream of [1, 2]) expect(captures.add(stream, () => undefined)).toBe(true);
  return captures;
}

describe('captures of several streams', () => {
  it('take in a stream that waits for one of their events, each in its own order', () => {
    const captures = forked();
    expect(captures.add(3, () => undefined)).toBe(false);
    expect(captures.join(1, captures.pointOf(2))).toBe(0);
    captures.add(1, () => undefined);
    const nodes = captures.end(1) as GraphNode[];
    expect(nodes.map(({ stream, after }) => [stream, after.map((node) => nodes.indexOf(node))])).toEqual([
      [1, []],
      [1, [0]],
      [2, [0]],
      [1, [1, 2]],
    ]);
    expect(captures.of(2)).toBeNull();
  });

  it('fail as CUDA does where a stream was never joined, or another one ends them', () => {
    expect(forked().end(2)).toBe(captureUnmatched);
    expect(forked().end(1)).toBe(captureUnjoined);
  });

  it('do not wait for what runs, nor let it wait for them', () => {
    const captures = forked();
    expect(captures.join(1, null)).toBe(captureIsolation);
    const point = captures.pointOf(1);
    captures.join(1, captures.pointOf(2));
    captures.end(1);
    expect(captures.join(3, point)).toBe(capturedEvent);
  });
});

describe('drawOrder', () => {
  it('gives orders that the edges allow, others from draw to draw', () => {
    const drawn = fc.array(fc.record({ stream: fc.nat(2), after: fc.array(fc.nat(20), { maxLength: 3 }) }), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(drawn, fc.infiniteStream(fc.nat()), (specs, draws) => {
        const nodes: GraphNode[] = [];
        for (const { stream, after } of specs)
          nodes.push({
            stream,
            run: () => undefined,
            after: nodes.filter((_, i) => after.includes(i)),
          });
        const order = drawOrder(nodes, () => draws.next().value as number);
        expect(new Set(order)).toEqual(new Set(nodes));
        order.forEach(({ after }, i) => {
          for (const node of after) expect(order.indexOf(node)).toBeLessThan(i);
        });
      }),
    );
    const node = (stream: number): GraphNode => ({ stream, run: () => undefined, after: [] });
    const nodes = [node(1), node(2), node(1)];
    let draw = 0;
    const orders = Array.from({ length: 40 }, () =>
      drawOrder(nodes, () => (draw = (draw * 5 + 3) % 97))
        .map((each) => nodes.indexOf(each))
        .join(),
    );
    expect(new Set(orders).size).toBeGreaterThan(3);
  });
});
