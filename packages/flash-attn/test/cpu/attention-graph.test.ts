import type { OnnxGraph } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AttentionGraph } from '../../src/cpu/attention-graph.ts';

/** The graph of a problem, of which nothing is built. */
function graphOf(queries: number, keys: number, { causal = true, heads = 1 } = {}): AttentionGraph {
  const graph = { constant: () => null } as unknown as OnnxGraph;
  const sizes = { batch: 1, heads, keyHeads: heads, queries, keys, headDimension: 4 };
  return new AttentionGraph(graph, sizes, { causal, scale: 1 });
}

// 16 MiB of scores are 64 rows of this many heads and 64 keys, or 16 of as many heads and more keys.
const manyHeads = 1024;

describe('blocks of scores on the CPU', () => {
  it('cover all rows, as many as there is room for, and none is a single row of many', () => {
    for (const columns of [1, 64, 256, 5000]) {
      for (let rows = 1; rows <= 600; rows++) {
        const blocks = graphOf(rows, columns, { heads: manyHeads }).blocks(rows, columns);
        expect(blocks[0]!.start).toBe(0);
        expect(blocks.at(-1)!.end).toBe(rows);
        blocks.forEach(({ start, end }, i) => {
          if (i > 0) expect(start).toBe(blocks[i - 1]!.end);
          expect(end - start).toBeGreaterThanOrEqual(Math.min(rows, 2));
          // A row or two more than there is room for keep the last from being alone.
          expect(end - start).toBeLessThanOrEqual(Math.max(16, 4096 / columns) + 2);
        });
      }
    }
  });

  it('of keys are multiplied by all queries that see them, and never by a single one of many', () => {
    for (const queries of [1, 2, 15, 16, 17, 40, 241]) {
      for (const keys of [1, 5, 16, 17, 40, 241, 300]) {
        const graph = graphOf(queries, keys);
        for (let start = 0; start < keys; start++) {
          const { start: first, end } = graph.seeing({ start, end: start + 1 });
          expect(end).toBe(queries);
          for (let query = 0; query < queries; query++)
            if (start <= query + keys - queries) expect(query).toBeGreaterThanOrEqual(first);
          expect(first).toBeGreaterThanOrEqual(0);
          expect(end - first).toBeGreaterThanOrEqual(Math.min(queries, 16));
          // No more of those that do not see it than that.
          const seeing = Math.max(0, Math.min(queries, keys - start));
          expect(end - first).toBeLessThanOrEqual(Math.max(seeing, Math.min(queries, 16)));
        }
        expect(graphOf(queries, keys, { causal: false }).seeing({ start: keys - 1, end: keys }).start).toBe(
          0,
        );
      }
    }
  });
});
