import {
  RooflineError,
  type Tensor,
  copyInPlace,
  describeValue,
  empty,
  formatShape,
  isFloatingPoint,
  keep,
  noGrad,
  requireTensors,
  scope,
  toDevice,
} from '@roofline/tensor-core';
import { valueBeyond } from '@roofline/tensor-core/kernel-api';
import { refuseReplays } from '../refuse-replays.ts';

/**
 * What is needed to continue a run: tensors and text, as safetensors files hold them. Parameters are numbered
 * through all groups, in order: a tensor of parameter 3 has a name that ends with `.3`, and text that is a JSON list has
 * an entry for each. So a state can be split by parameters, as ShardedOptimizer of @roofline/collectives does.
 */
export interface OptimizerState {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A state that does not belong to this optimizer. */
export class OptimizerStateError extends RooflineError {
  constructor(message: string) {
    super('OPTIMIZER_STATE', message);
  }
}

/**
 * Throws an OptimizerStateError unless `state` is tensors and text by their names, and a CompileError in a compiled
 * function, whose replays would not load it.
 */
export function checkState(owner: string, state: OptimizerState): void {
  refuseReplays(`the state of ${owner} is loaded`);
  const isRecord = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isRecord(state) || !isRecord(state.tensors) || !isRecord(state.metadata)) {
    throw new OptimizerStateError(
      `${owner}.loadStateDict: takes { tensors, metadata }, as stateDict() gives them, not ${describeValue(state)}.`,
    );
  }
  for (const [name, value] of Object.entries(state.metadata)) {
    if (typeof value === 'string') continue;
    throw new OptimizerStateError(
      `${owner}.loadStateDict: "${name}" of the metadata must be text, not ${describeValue(value)}.`,
    );
  }
  requireTensors(`${owner}.loadStateDict`, Object.values(state.tensors));
}

/**
 * Copies of a state's tensors for an optimizer to own, each float32 and on the device of the parameter that
 * `parameters` gives for its name. Throws an OptimizerStateError that lists all that does not fit or names a tensor that
 * holds a value beyond float32, and a DisposedError for a tensor that has been disposed; nothing is kept then.
 */
export function copyState(
  owner: string,
  { tensors }: OptimizerState,
  parameters: ReadonlyMap<string, Tensor>,
): Map<string, Tensor> {
  const complaints = [
    ...[...parameters].flatMap(([name, parameter]) => misfit(name, tensors[name], parameter)),
    ...Object.keys(tensors)
      .filter((name) => !parameters.has(name))
      .map((name) => `"${name}" belongs to no parameter`),
  ];
  if (complaints.length > 0) {
    throw new OptimizerStateError(
      `${owner}.loadStateDict: ${complaints.join('; ')}. Load the state of an optimizer of the same parameters.`,
    );
  }
  for (const name of parameters.keys()) tensors[name]!.assertAlive(`${owner}.loadStateDict: "${name}"`);
  const copies = new Map<string, Tensor>();
  try {
    for (const [name, parameter] of parameters)
      copies.set(name, copyOnto(owner, name, parameter, tensors[name]!));
  } catch (error) {
    for (const copy of copies.values()) copy.dispose();
    throw error;
  }
  return copies;
}

function misfit(name: string, tensor: Tensor | undefined, parameter: Tensor): string[] {
  if (!tensor) return [`there is no tensor "${name}"`];
  const [shape, wanted] = [tensor, parameter].map((x) => formatShape(x.shape));
  if (shape !== wanted) return [`"${name}" is ${shape}, its parameter ${wanted}`];
  return isFloatingPoint(tensor.dtype) ? [] : [`"${name}" is ${tensor.dtype}, not floating-point`];
}

function copyOnto(owner: string, name: string, { shape, dtype, device }: Tensor, source: Tensor): Tensor {
  const beyond = valueBeyond(source, dtype);
  if (beyond !== null) {
    throw new OptimizerStateError(
      `${owner}.loadStateDict: "${name}" holds ${beyond} in ${source.dtype}, which is beyond ${dtype}; the state is damaged, or of ` +
        'a training that cannot go on in this dtype.',
    );
  }
  return noGrad(() =>
    scope(() => {
      const copy = empty(shape, { dtype, device });
      copyInPlace(copy, toDevice(source, device));
      return keep(copy);
    }),
  );
}
