import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { Replay, Tensor } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { type ExplainedCall, nodesBefore } from '../../src/compile/executable/explained-call.ts';
import { lastUses } from '../../src/compile/graph/liveness.ts';
import { graphOf } from './traced-graph.ts';
import { scaled } from './lowered-ops.ts';

describe('nodesBefore', () => {
  const row = (members: number, nodes: number | null) =>
    ({ members: Array.from({ length: members }, () => 'mul'), nodes }) as unknown as ExplainedCall;

  it.each<[string, ExplainedCall[], number | null]>([
    ['counts the members of a fused call', [row(3, 1), row(2, 1)], 5],
    ['counts the nodes of calls that are several', [row(0, 2), row(2, 4), row(0, 0)], 6],
    ['does not know more than the calls do', [row(3, 1), row(0, null)], null],
  ])('%s', (_, rows, expected) => expect(nodesBefore(rows)).toBe(expected));
});

describe('lastUses', () => {
  it('names each intermediate where it is used last, from the first group on', () => {
    const x = t.ones([2]);
    const { graph } = graphOf(() => {
      t.exp(x);
      const y = t.mul(x, 2);
      return [t.add(t.exp(y), y)];
    });
    const [unused, y, e] = graph.calls.map(({ outputs }) => outputs[0]!.storage);
    const groups = graph.calls.map((call) => [call]);
    expect(lastUses(graph, groups)).toEqual([[unused], [], [], [e, y]]);
    expect(lastUses(graph, [graph.calls])).toEqual([[unused, y, e]]);
  });
});

describe('the eager peak', () => {
  it('is without what was there before, and with what was freed by the end', () => {
    const outside = t.zeros([2 ** 20]);
    const peaks = t.compile((x: Tensor) => {
      const y = t.mul(x, 2);
      t.scope(() => t.sum(t.exp(t.expand(y, [2 ** 18]))));
      return t.relu(y);
    });
    peaks(t.ones([1]));
    const { eagerPeakBytes } = peaks.explain()[0]!;
    expect(eagerPeakBytes).toBeGreaterThanOrEqual(2 ** 20);
    expect(eagerPeakBytes).toBeLessThan(outside.byteLength);
  });
});

describe.skipIf(hostCompilerVersion() === null)('what is said of a compiled function on a GPU', () => {
  const device = openEmulatedDevice();

  it('is of the calls that it was fused from, in their ranges, with the attributes of this run', () => {
    let factor = 1;
    const table = t.ones([4, 4], { device });
    const f = t.compile((x: Tensor) => {
      const y = t.range('layer', () => t.mul(t.exp(x), 2));
      const [z] = t.applyLive(scaled, [t.matmul(t.mul(t.exp(t.matmul(y, table)), 2), table)], () => ({
        factor: ++factor,
      }));
      return t.sum(t.softmax(z!, -1), { dims: [0] });
    });
    const x = t.ones([4, 4], { device });
    f(x);
    expect(f.explain()[0]).toMatchObject({ nodes: null, nodesBefore: null });
    expect(f.explain()[0]!.table.map(({ nodes }) => nodes)).toContain(null);
    f(x);
    const [{ table: rows, ...facts }] = f.explain() as [t.CompileExplanation];
    const fused = rows.find(({ members }) => members.length > 0)!;
    expect(fused).toMatchObject({ members: ['exp', 'mul'], range: ['layer'], nodes: 1 });
    const single = rows.find(({ op }) => op === 'matmul')!;
    expect(single).toMatchObject({ members: [], range: [] });
    expect(rows.map(({ nodes }) => nodes)).not.toContain(null);
    expect(facts.nodes).toBe(rows.reduce((sum, { nodes }) => sum + nodes!, 0));
    expect(facts.nodesBefore).toBe(facts.nodes! + 2);
    expect([...facts.fused.values()]).toEqual([2]);
    const replays: Replay[] = [];
    const stop = t.observeOps({ beforeReplay: (replay) => replays.push(replay) });
    f(x);
    stop();
    const calls = replays[0]!.calls;
    expect(calls.map(({ members }) => members.map(({ op }) => op.name))).toContainEqual(['exp', 'mul']);
    expect(calls.find(({ op }) => op.name === 'matmul')).toMatchObject({ members: [] });
    const attributes = new Map(calls.map(({ op, attributes: given }) => [op.name, given]));
    expect(attributes.get('scaled')).toEqual({ factor });
    expect(attributes.get('sum')).toMatchObject({ dims: [0] });
  });
});
