import { RooflineError, checkFlag, checkOptions, describeValue } from '@roofline/tensor-core';
import { ProcessGroup } from '../../group/process-group.ts';
import { Mesh } from '../mesh.ts';

const dtypes = ['float32', 'bfloat16', 'float16'] as const;

/** Options of `fullyShard`; all ranks give the same. */
export interface FullyShardOptions {
  /** Parameters are gathered in it, and modules run under autocast to it. Default float32. */
  readonly computeDtype?: (typeof dtypes)[number];
  /** Gradients are reduced in it. Default float32. */
  readonly reduceDtype?: (typeof dtypes)[number];
  /** Whether a unit's parameters go after forward, and are gathered again for backward. Default true. */
  readonly reshardAfterForward?: boolean;
  /** Whether the next unit's parameters are gathered while one computes. Default true. */
  readonly prefetch?: boolean;
  /**
   * Whether the backward pass may leave parameters out, which then keep no gradient unless another rank has used them; gradients
   * are reduced at its end then, and are all whole until then. Default false: they are an error that names them.
   */
  readonly findUnusedParameters?: boolean;
}

/** What errors name. */
export const owner = 'fullyShard';

/** The options with their defaults. Throws a RooflineError for what they are not. */
export function checkedOptions(options: FullyShardOptions): Required<FullyShardOptions> {
  const flags = ['reshardAfterForward', 'prefetch', 'findUnusedParameters'] as const;
  checkOptions(owner, options, ['computeDtype', 'reduceDtype', ...flags]);
  const { computeDtype = 'float32', reduceDtype = 'float32' } = options;
  const { reshardAfterForward = true, prefetch = true, findUnusedParameters = false } = options;
  checkDtype('computeDtype', computeDtype);
  checkDtype('reduceDtype', reduceDtype);
  const checked = { computeDtype, reduceDtype, reshardAfterForward, prefetch, findUnusedParameters };
  for (const flag of flags) checkFlag(owner, flag, checked[flag]);
  return checked;
}

function checkDtype(name: string, dtype: string): void {
  if ((dtypes as readonly string[]).includes(dtype)) return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: ${name} is one of ${dtypes.join(', ')}, not ${describeValue(dtype)}.`,
  );
}

/** The ranks that share a model's parameters. */
export interface ShardingGroups {
  readonly group: ProcessGroup;
  readonly shard: ProcessGroup;
  /** Those that hold the same shard; null for none. */
  readonly replicate: ProcessGroup | null;
  /** The groups that together join all ranks with the same parameters: one, or one for each axis other than `tensor`. */
  readonly joined: readonly ProcessGroup[];
}

/**
 * The groups of a mesh with the axis `shard`, for replicas of it `replicate`, and `tensor` where each layer is divided; a group alone is
 * all shards.
 */
export function shardingGroups(mesh: Mesh | ProcessGroup): ShardingGroups {
  if (mesh instanceof ProcessGroup) return { group: mesh, shard: mesh, replicate: null, joined: [mesh] };
  if (!(mesh instanceof Mesh))
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: takes a Mesh or a ProcessGroup, not ${describeValue(mesh)}.`,
    );
  const known = ['replicate', 'shard', 'tensor'];
  if (!mesh.has('shard') || Object.keys(mesh.axes).some((axis) => !known.includes(axis)))
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: the mesh has the axes ${Object.keys(mesh.axes).join(', ')}; it takes shard, with replicate or tensor or both beside it.`,
    );
  const isLong = (axis: string) => mesh.has(axis) && mesh.axes[axis]! > 1;
  const replicate = isLong('replicate') ? mesh.along('replicate') : null;
  const shard = mesh.along('shard');
  const joined = isLong('tensor') ? [...(replicate ? [replicate] : []), shard] : [mesh.group];
  return { group: mesh.group, shard, replicate, joined };
}
