import { describe, expect, it } from 'vitest';
import { ProcessGroup } from '../../src/group/process-group.ts';
import { Mesh, groupAlong } from '../../src/parallel/mesh.ts';
import { InstantBackend } from '../support/instant-backend.ts';

const first = 100;

/** A group of so many ranks, as one of them sees it; in the world they are 100, 101 and so on. */
function groupOf(size: number, rank: number): ProcessGroup {
  const none = () => {};
  const regroup = (members: { ranks: readonly number[]; rank: number }): Promise<ProcessGroup> =>
    Promise.resolve(new ProcessGroup(members, new InstantBackend(), regroup, none));
  const ranks = Array.from({ length: size }, (_, i) => first + i);
  return new ProcessGroup({ ranks, rank }, new InstantBackend(), regroup, none);
}

/** The members of a rank's group along an axis, and its place among them. */
const along = <Axis extends string>(mesh: Mesh<Axis>, axis: Axis) => {
  const { ranks, rank } = mesh.along(axis);
  return [ranks.map((each) => each - first), rank];
};

describe('a mesh', () => {
  // Three lengths of which no two products of neighbours are the same.
  const axes = { replicate: 2, shard: 3, tensor: 5 };

  it('has groups of the ranks that differ along one axis alone, neighbours along the last', async () => {
    const mesh = await Mesh.create(groupOf(30, 23), axes);
    expect(along(mesh, 'replicate')).toEqual([[8, 23], 1]);
    expect(along(mesh, 'shard')).toEqual([[18, 23, 28], 1]);
    expect(along(mesh, 'tensor')).toEqual([[20, 21, 22, 23, 24], 3]);
    expect(mesh.axes).toEqual(axes);
  });

  it('divides all ranks along each axis', async () => {
    const meshes = await Promise.all(
      Array.from({ length: 30 }, (_, rank) => Mesh.create(groupOf(30, rank), axes)),
    );
    for (const axis of ['replicate', 'shard', 'tensor'] as const) {
      for (const [rank, mesh] of meshes.entries()) {
        const [members, place] = along(mesh, axis) as [number[], number];
        expect(members[place]).toBe(rank);
        for (const member of members) expect(along(meshes[member]!, axis)[0]).toEqual(members);
      }
    }
  });

  it('takes the group itself along an axis of all ranks, and gives back only what it has made', async () => {
    const group = groupOf(3, 1);
    const lengths = { replicate: 1, shard: 3 };
    const mesh = await Mesh.create(group, lengths);
    lengths.shard = 5;
    expect(mesh.axes.shard).toBe(3);
    const alone = mesh.along('replicate');
    expect(mesh.along('shard')).toBe(group);
    expect(alone.ranks).toEqual([101]);
    mesh.dispose();
    expect(() => alone.barrier()).toThrow(/disposed/);
    group.barrier().wait();
  });

  it('has axes whose lengths multiply to as many ranks', async () => {
    const wrongs: Record<string, number>[] = [{ shard: 5 }, { replicate: 2, shard: 2 }, { shard: 12 }];
    for (const wrong of wrongs)
      await expect(Mesh.create(groupOf(6, 0), wrong)).rejects.toThrow(/let their lengths multiply/);
    await expect(Mesh.create(groupOf(1, 0), {})).rejects.toThrow(
      'there are no axes; name one, as { shard: 1 }.',
    );
    await expect(Mesh.create(groupOf(1, 0), { shard: 1 })).resolves.toBeInstanceOf(Mesh);
  });
});

describe('the group along an axis', () => {
  it('is a group as it is, or that of a mesh', async () => {
    const group = groupOf(4, 2);
    const mesh = await Mesh.create(group, { replicate: 2, shard: 2 });
    expect(groupAlong('caller', group, 'shard')).toBe(group);
    expect(groupAlong('caller', mesh, 'shard')).toBe(mesh.along('shard'));
    expect(() => groupAlong('caller', mesh, 'tensor')).toThrow(
      'caller: the mesh has the axes replicate, shard; name one of them tensor.',
    );
    expect(() => groupAlong('caller', {} as never, 'shard')).toThrow(
      'caller: takes a Mesh or a ProcessGroup',
    );
    expect(() => mesh.along('tensor' as never)).toThrow('there are replicate, shard.');
  });
});
