import { type Device, type Tensor, copy, empty, keep, noGrad, toDevice } from '@roofline/tensor-core';
import type { ProcessGroup } from '../group/process-group.ts';
import { type ShardableState, type StatePart, joinStates, splitName } from './shard-states.ts';

/** What memory a tensor takes, before it has come. */
type TensorPlan = Pick<Tensor, 'shape' | 'dtype'>;

/**
 * The whole state, in copies, of the parts that the ranks hold: on the `root`, or on all for null; null elsewhere. A
 * collective.
 */
export async function gatherState(
  group: ProcessGroup,
  own: StatePart<Tensor>,
  root: number | null,
  device: Device,
): Promise<ShardableState | null> {
  const { numbers, metadata } = own;
  const parts = await group.allGatherObject<StatePart<TensorPlan>>({
    numbers,
    metadata,
    tensors: mapValues(own.tensors, planOf),
  });
  return await freedOnFailure(async (received) => {
    const gathered: StatePart<Tensor>[] = [];
    for (const [from, part] of parts.entries()) {
      const tensors: Record<string, Tensor> = {};
      for (const [name, plan] of Object.entries(part.tensors)) {
        const source = from === group.rank ? own.tensors[name]! : null;
        const tensor = root === null || root === group.rank ? received(source, plan, device) : null;
        if (root === null) await group.broadcast(tensor!, from).done;
        else await pass(group, { from, to: root }, source, tensor);
        if (tensor) tensors[name] = tensor;
      }
      gathered.push({ ...part, tensors });
    }
    return root === null || root === group.rank ? joinStates(gathered) : null;
  });
}

/**
 * Brings the root's state to the ranks that need it: each gets copies of the tensors of its own parameters alone.
 * `owners` says which rank owns each parameter. A collective.
 */
export async function scatterState(
  group: ProcessGroup,
  state: ShardableState | null,
  root: number,
  owners: readonly number[],
  device: Device,
): Promise<ShardableState> {
  const { tensors = {}, metadata = {} } = state ?? {};
  const [plans, texts] = (await group.allGatherObject([mapValues(tensors, planOf), metadata] as const))[
    root
  ]!;
  return await freedOnFailure(async (received) => {
    const scattered: Record<string, Tensor> = {};
    for (const [name, plan] of Object.entries(plans)) {
      const to = owners[splitName(name, owners.length).number]!;
      // What has been loaded from a file lies on the CPU.
      const source = root === group.rank ? noGrad(() => keep(toDevice(tensors[name]!, device))) : null;
      try {
        const tensor = to === group.rank ? received(source, plan, device) : null;
        await pass(group, { from: root, to }, source, tensor);
        if (tensor) scattered[name] = tensor;
      } finally {
        source?.dispose();
      }
    }
    return { tensors: scattered, metadata: texts };
  });
}

/** What `run` gives, which makes tensors by the function that it gets; frees these where it fails. */
async function freedOnFailure<T>(run: (make: typeof received) => Promise<T>): Promise<T> {
  const made: Tensor[] = [];
  try {
    return await run((...parameters) => {
      const tensor = received(...parameters);
      made.push(tensor);
      return tensor;
    });
  } catch (error) {
    for (const tensor of made) tensor.dispose();
    throw error;
  }
}

/** From one rank to another; what stays has been copied. */
async function pass(
  group: ProcessGroup,
  { from, to }: { from: number; to: number },
  source: Tensor | null,
  target: Tensor | null,
): Promise<void> {
  if (from === to) return;
  if (group.rank === from) await group.send(source!, to).done;
  else if (group.rank === to) await group.recv(target!, from).done;
}

/** A tensor for what is to come; a copy where that is here already. */
function received(source: Tensor | null, { shape, dtype }: TensorPlan, device: Device): Tensor {
  return noGrad(() => keep(source ? copy(source) : empty(shape, { dtype, device })));
}

function planOf({ shape, dtype }: Tensor): TensorPlan {
  return { shape: [...shape], dtype };
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, of: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value)]));
}
