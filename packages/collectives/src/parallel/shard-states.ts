import { RooflineError, type Tensor, checkObject, checkText, requireTensors } from '@roofline/tensor-core';

/** An optimizer's state, as @roofline/optim has it: see its OptimizerState for the numbers of parameters. */
export interface ShardableState {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The part of some parameters: `numbers[i]`, of all, is the part's parameter i. */
export interface StatePart<T> {
  readonly numbers: readonly number[];
  readonly tensors: Readonly<Record<string, T>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Throws a RooflineError (code ARGUMENT) unless `state` is tensors and text by their names, a DisposedError for one that is gone. */
export function checkShardable(owner: string, state: ShardableState): void {
  checkObject(owner, 'the state', state);
  checkObject(owner, "the state's tensors", state.tensors);
  checkObject(owner, "the state's metadata", state.metadata);
  requireTensors(owner, Object.values(state.tensors));
  for (const [name, tensor] of Object.entries(state.tensors)) tensor.assertAlive(`${owner}: "${name}"`);
  for (const [name, text] of Object.entries(state.metadata))
    checkText(owner, `"${name}" of the metadata`, text);
}

/**
 * The part of a state for some of its `count` parameters. Throws a RooflineError (code OPTIMIZER_STATE) for names that
 * do not exist.
 */
export function selectState(
  { tensors, metadata }: ShardableState,
  numbers: readonly number[],
  count: number,
): ShardableState {
  const places = new Map(numbers.map((number, i) => [number, i]));
  const selected = Object.entries(tensors).flatMap(([name, tensor]) => {
    const { what, number } = splitName(name, count);
    const place = places.get(number);
    return place === undefined ? [] : [[`${what}.${place}`, tensor] as const];
  });
  const texts = Object.entries(metadata).map(([name, text]) => {
    const list = listOf(text, count);
    return [name, list ? JSON.stringify(numbers.map((number) => list[number])) : text] as const;
  });
  return { tensors: Object.fromEntries(selected), metadata: Object.fromEntries(texts) };
}

/** The state whose parts these are. */
export function joinStates<T>(parts: readonly StatePart<T>[]): {
  tensors: Record<string, T>;
  metadata: Record<string, string>;
} {
  const count = parts.reduce((sum, { numbers }) => sum + numbers.length, 0);
  const tensors = parts.flatMap(({ numbers, tensors }) =>
    Object.entries(tensors).map(([name, tensor]) => {
      const { what, number } = splitName(name, numbers.length);
      return [`${what}.${numbers[number]!}`, tensor] as const;
    }),
  );
  return { tensors: Object.fromEntries(tensors), metadata: joinMetadata(parts, count) };
}

function joinMetadata(
  parts: readonly Pick<StatePart<unknown>, 'numbers' | 'metadata'>[],
  count: number,
): Record<string, string> {
  // A rank without parameters has no optimizer that could say anything.
  const telling = parts.filter(({ numbers }) => numbers.length > 0);
  const texts = Object.entries(telling[0]?.metadata ?? {});
  return Object.fromEntries(
    texts.map(([name, text]) => {
      const lists = telling.map(({ numbers, metadata }) => listOf(metadata[name] ?? '', numbers.length));
      if (lists.includes(null)) return [name, text];
      const whole = new Array<unknown>(count);
      telling.forEach(({ numbers }, part) =>
        numbers.forEach((number, i) => (whole[number] = lists[part]![i])),
      );
      return [name, JSON.stringify(whole)];
    }),
  );
}

/** `exp_avg.3` is of parameter 3. Throws a RooflineError (code OPTIMIZER_STATE) unless it is one of `count`. */
export function splitName(name: string, count: number): { what: string; number: number } {
  const [, what, digits] = /^(.*)\.(\d+)$/.exec(name) ?? [];
  const number = Number(digits);
  if (what !== undefined && number < count) return { what, number };
  throw new RooflineError(
    'OPTIMIZER_STATE',
    `ShardedOptimizer: "${name}" is no tensor of one of ${count} parameters; their names end with a number, from 0 on.`,
  );
}

/** What text that is a JSON list has for each of `count` parameters; null for text about all. */
function listOf(text: string, count: number): unknown[] | null {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.length === count ? list : null;
  } catch {
    return null;
  }
}
