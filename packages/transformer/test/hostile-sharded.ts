import { reshape } from '@roofline/tensor-core';
import type { HostileTable } from '../../../tooling/hostile-arguments.ts';
import type * as transformer from '../src/index.ts';

/** What calls are made with, and what undoes them. */
interface Fixtures {
  readonly model: () => transformer.TransformerLM;
  readonly checkpointFile: () => string;
  readonly path: string;
  /** What errors of a file that is not there begin with. */
  readonly missing: string;
  readonly undo: () => void;
}

/** A model of one rank, which has all of it. */
export const shardedOf = (whole: transformer.TransformerLM): transformer.ShardedParameters => {
  const all = [...whole.namedParameters()];
  const leaves = new Map(
    all.map(([name, parameter]) => [name, reshape(parameter.detach(), [parameter.size])]),
  );
  return {
    module: whole,
    group: { rank: 0, ranks: [0], allGatherObject: (value) => Promise.resolve([value]) },
    shardGroup: { rank: 0, size: 1, ranks: [0] },
    parts: () =>
      all.map(([name, { shape, size }]) => ({ name, shape, start: 0, end: size, leaf: leaves.get(name)! })),
    shapes: () => all.map(([name, { shape }]) => [name, shape]),
    wholeParameters: () => all,
  };
};
const statelessOptimizer = (): transformer.PartOptimizer => ({
  parameters: () => [],
  stateDict: () => ({ tensors: {}, metadata: {} }),
  loadStateDict() {},
});
const optimizerLegal = { '2.optimizer': 'undefined' };
const optimizerMethods = Object.fromEntries(
  ['parameters', 'stateDict', 'loadStateDict'].map((name) => [`2.optimizer.${name}`, 'fn']),
);

/** Of models whose parameters are split over ranks. */
export function shardedTable({ model, checkpointFile, path, missing, undo }: Fixtures): HostileTable {
  const sharded = () => shardedOf(model());
  return {
    deferWeights: { args: () => [() => 5], legal: { 0: 'fn' } },
    saveSharded: {
      args: () => [sharded(), path, { optimizer: statelessOptimizer(), metadata: { a: 'b' } }],
      whole: [0],
      legal: {
        ...{ 1: 'a', 2: 'undefined {}', '2.metadata': 'undefined {}', '2.metadata.a': 'a' },
        ...{ ...optimizerLegal, ...optimizerMethods },
      },
      undo,
    },
    loadSharded: {
      args: () => [sharded(), checkpointFile(), { optimizer: statelessOptimizer() }],
      named: `loadSharded|${missing}`,
      whole: [0],
      legal: { 2: 'undefined {}', ...optimizerLegal, ...optimizerMethods },
      undo,
    },
    saveWhole: {
      args: () => [sharded(), path, { format: 'pt' }],
      whole: [0],
      legal: { 1: 'a', 2: 'undefined {}', '2.format': 'a' },
      undo,
    },
  };
}
