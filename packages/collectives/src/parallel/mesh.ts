import { RooflineError, checkCount, checkObject, describeValue } from '@roofline/tensor-core';
import { requireGroup } from '../group/check-call.ts';
import { ProcessGroup } from '../group/process-group.ts';

const owner = 'Mesh.create';

/**
 * The ranks of a group along named axes, such as `{ replicate: 2, shard: 8 }`: those along the last axis are neighbours. Each
 * axis has groups of its own, of the ranks that differ in that axis alone.
 *
 *     const mesh = await Mesh.create(group, { replicate: 2, shard: 8 });
 *     mesh.along('shard').allReduce(x);
 */
export class Mesh<Axis extends string = string> {
  /** All ranks of the mesh. */
  readonly group: ProcessGroup;
  /** The lengths of the axes, in their order. */
  readonly axes: Readonly<Record<Axis, number>>;
  readonly #groups: ReadonlyMap<Axis, ProcessGroup>;

  /** Made by `Mesh.create`. */
  private constructor(
    group: ProcessGroup,
    axes: Readonly<Record<Axis, number>>,
    groups: ReadonlyMap<Axis, ProcessGroup>,
  ) {
    this.group = group;
    this.axes = axes;
    this.#groups = groups;
  }

  /**
   * Makes the groups of all axes. A collective: all ranks of `group` call it alike. Throws a RooflineError (code RANGE) unless the
   * lengths multiply to the group's size, and what `subGroup` throws.
   */
  static async create<const Axis extends string>(
    group: ProcessGroup,
    axes: Readonly<Record<Axis, number>>,
  ): Promise<Mesh<Axis>> {
    requireGroup(owner, group);
    checkObject(owner, 'the axes', axes);
    const lengths = Object.entries(axes) as [Axis, number][];
    for (const [axis, length] of lengths) checkCount(owner, axis, length, 1);
    const ranks = lengths.reduce((product, [, length]) => product * length, 1);
    if (lengths.length === 0)
      throw new RooflineError('RANGE', `${owner}: there are no axes; name one, as { shard: ${group.size} }.`);
    if (ranks !== group.size)
      throw new RooflineError(
        'RANGE',
        `${owner}: the axes ${JSON.stringify(axes)} are of ${ranks} ranks, and the group has ${group.size}; let their lengths ` +
          "multiply to the group's size.",
      );
    const groups = new Map<Axis, ProcessGroup>();
    let stride = ranks;
    for (const [axis, length] of lengths) {
      stride /= length;
      const first = group.rank - (Math.floor(group.rank / stride) % length) * stride;
      const members = Array.from({ length }, (_, i) => first + i * stride);
      groups.set(axis, length === group.size ? group : await group.subGroup(members));
    }
    return new Mesh(group, { ...axes }, groups);
  }

  /** The ranks along an axis, this one among them. Throws a RooflineError (code ARGUMENT) where there is no such axis. */
  along(axis: Axis): ProcessGroup {
    const group = this.#groups.get(axis);
    if (group) return group;
    throw new RooflineError(
      'ARGUMENT',
      `Mesh.along: there is no axis ${describeValue(axis)}; there are ${[...this.#groups.keys()].join(', ')}.`,
    );
  }

  /** Whether there is such an axis. */
  has(axis: string): axis is Axis {
    return this.#groups.has(axis as Axis);
  }

  /** Leaves the groups that the mesh has made; `group` stays. */
  dispose(): void {
    for (const group of this.#groups.values()) if (group !== this.group) group.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** A group as it is, or the one along an axis of a mesh. Throws a RooflineError, in the name of `caller`, for anything else. */
export function groupAlong(caller: string, ranks: Mesh | ProcessGroup, axis: string): ProcessGroup {
  if (ranks instanceof ProcessGroup) return ranks;
  if (ranks instanceof Mesh && ranks.has(axis)) return ranks.along(axis);
  throw new RooflineError(
    'ARGUMENT',
    ranks instanceof Mesh
      ? `${caller}: the mesh has the axes ${Object.keys(ranks.axes).join(', ')}; name one of them ${axis}.`
      : `${caller}: takes a Mesh or a ProcessGroup, not ${describeValue(ranks)}.`,
  );
}
