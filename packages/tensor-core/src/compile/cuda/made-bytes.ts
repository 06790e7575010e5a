import type { Graph } from '../graph/graph.ts';

/** The bytes of the storages that the graph makes and writes, other than what would be workspaces of ops. */
export function madeBytes({ calls, storages }: Graph): number {
  const written = new Set(calls.flatMap(({ outputs }) => outputs.map(({ storage }) => storage)));
  let bytes = 0;
  for (const number of written) {
    const { source, byteLength, isWorkspace = false } = storages[number]!;
    if (source.kind === 'made' && !isWorkspace) bytes += byteLength;
  }
  return bytes;
}
