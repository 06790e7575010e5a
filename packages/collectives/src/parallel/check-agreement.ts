import { type Tensor, formatShape, fromTypedArray, noGrad, scope, zeros } from '@roofline/tensor-core';
import { createHash } from 'node:crypto';
import { CollectiveError } from '../errors.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { rankNames } from '../ranks/rank-names.ts';

const digestWords = 8;

/** A parameter with its name. */
export type NamedTensor = readonly [name: string, tensor: Tensor];

/**
 * Throws a CollectiveError, on all ranks, unless all have parameters of the same names, shapes and dtypes in one order,
 * and the same options.
 */
export function checkAgreement(
  owner: string,
  group: ProcessGroup,
  parameters: readonly NamedTensor[],
  options: Readonly<Record<string, unknown>>,
): void {
  const lines = parameters.map(
    ([name, { dtype, shape, requiresGrad }]) => `${name} ${dtype} ${formatShape(shape)} ${requiresGrad}`,
  );
  const choices = JSON.stringify(options);
  const digests = gatherDigests(group, parameters[0]![1], [lines.join('\n'), choices]);
  const differing = (part: number) =>
    group.ranks.filter((_, member) => digests[member]![part] !== digests[group.rank]![part]);
  const rank = group.ranks[group.rank]!;
  const others = differing(0);
  if (others.length > 0) {
    throw new CollectiveError(
      `${owner}: rank ${rank} has ${lines.length} parameters, from ${lines[0]} to ${lines.at(-1)}, and ` +
        `${rankNames(others)} others, in names, dtypes, shapes, order or whether they are trained; build the same model ` +
        'on all ranks.',
      { op: owner, rank, peers: others },
    );
  }
  const otherwise = differing(1);
  if (otherwise.length === 0) return;
  throw new CollectiveError(
    `${owner}: rank ${rank} has the options ${choices}, ${rankNames(otherwise)} others; give all ranks the same.`,
    { op: owner, rank, peers: otherwise },
  );
}

/** Of each rank, a digest of each text. */
function gatherDigests(group: ProcessGroup, { device }: Tensor, texts: readonly string[]): string[][] {
  const words = texts.flatMap((text) => [...new Int32Array(sha256(text).buffer)]);
  return noGrad(() =>
    scope(() => {
      const own = fromTypedArray(Int32Array.from(words), [words.length], { device });
      const all = zeros([group.size, words.length], { dtype: 'int32', device });
      group.allGather(all, own).wait();
      const values = all.toFlatArray();
      return group.ranks.map((_, member) =>
        texts.map((_, i) => {
          const start = member * words.length + i * digestWords;
          return values.slice(start, start + digestWords).join();
        }),
      );
    }),
  );
}

function sha256(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(text).digest());
}
