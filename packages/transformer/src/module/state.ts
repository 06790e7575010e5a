import {
  type DType,
  type Device,
  RooflineError,
  type Shape,
  type Tensor,
  cast,
  checkFlag,
  checkOptions,
  contiguous,
  copy,
  copyInPlace,
  device,
  formatShape,
  isFloatingPoint,
  keep,
  noGrad,
  scope,
} from '@roofline/tensor-core';
import { valueBeyond } from '@roofline/tensor-core/kernel-api';
import { fillDeferred } from './building.ts';
import { groupNames } from './group-names.ts';

/** A state that does not fit a module: names are missing or unknown, or shapes or dtypes differ. */
export class StateError extends RooflineError {
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];

  constructor(message: string, missing: readonly string[] = [], unexpected: readonly string[] = []) {
    super('STATE', message);
    this.missing = missing;
    this.unexpected = unexpected;
  }
}

/** Options of `loadStateDict` and `loadCheckpoint`. */
export interface StateMatchOptions {
  /** Whether a state must hold exactly the module's parameters. Default true. */
  readonly strict?: boolean;
}

/** What a state and a module do not share. */
export interface StateMatch {
  /** Parameters that the state does not have; they keep their values. */
  readonly missing: readonly string[];
  /** Tensors of the state that the module does not have. */
  readonly unexpected: readonly string[];
}

/** A tensor of a state, in memory or in a file. */
export interface StateSource {
  readonly shape: Shape;
  readonly dtype: DType;
  /** A new tensor of its values on a device. */
  read(device: Device): Tensor;
}

/** A parameter, and what is to be copied into it. */
interface StateLoad {
  readonly name: string;
  readonly parameter: Tensor;
  readonly source: StateSource;
}

/** A parameter with all of its names, and those of them that a state has. */
interface NamedParameter {
  readonly parameter: Tensor;
  readonly names: string[];
  readonly present: string[];
}

/**
 * Finds what each parameter is to be loaded from; `names` gives a tied parameter under each of its names. Reads
 * values only of those for which a state has more than one name. Throws a StateError that begins with `what` and
 * lists all that does not fit or is for a parameter that cannot be written, and a DisposedError for a parameter that has
 * been disposed.
 */
export function matchState(
  what: string,
  sources: ReadonlyMap<string, StateSource>,
  names: Iterable<readonly [name: string, parameter: Tensor]>,
  options: StateMatchOptions,
): StateMatch & { readonly loads: readonly StateLoad[] } {
  checkOptions(what, options, ['strict']);
  const { strict = true } = options;
  checkFlag(what, 'strict', strict);
  const parameters = namesByParameter(names, sources);
  const known = new Set(parameters.flatMap((parameter) => parameter.names));
  const missing = parameters
    .filter(({ present }) => present.length === 0)
    .map((parameter) => parameter.names[0]!);
  const unexpected = [...sources.keys()].filter((name) => !known.has(name));
  const misfits = parameters.flatMap((parameter) => misfitsOf(parameter, sources));
  const complaints = [
    ...(strict ? [complaint('missing', missing, ', '), complaint('unexpected', unexpected, ', ')] : []),
    complaint('of another kind', misfits, '\n    '),
  ].filter(Boolean);
  if (complaints.length > 0) {
    throw new StateError(
      `${what} does not fit the model:\n${complaints.join('')}Build the model with the sizes of the state` +
        (misfits.length > 0 ? '.' : ', or load what fits with { strict: false }.'),
      missing,
      unexpected,
    );
  }
  const loads = parameters.flatMap(({ parameter, present }) =>
    present.slice(0, 1).map((name) => ({ name, parameter, source: sources.get(name)! })),
  );
  return { missing, unexpected, loads };
}

/** One line, or one for each, in which the layers that have the same are one; empty where there is nothing to say. */
function complaint(what: string, names: readonly string[], separator: string): string {
  if (names.length === 0) return '';
  const grouped = groupNames(names).map(({ name }) => name);
  const shown = grouped.slice(0, mostShown);
  const more = grouped.length > mostShown ? [`and ${grouped.length - mostShown} more`] : [];
  const first = separator.startsWith('\n') ? separator : ' ';
  return `  ${what} (${names.length}):${first}${[...shown, ...more].join(separator)}\n`;
}

/** Groups of names in an error; all are in its lists. */
const mostShown = 12;

/**
 * Copies each source into its parameter, cast to its dtype. Throws a StateError for a value beyond what that dtype holds.
 * All copies are made before the first parameter is written, so what fails while they are made leaves the parameters as
 * they were.
 */
export function overwriteParameters(loads: readonly StateLoad[]): void {
  noGrad(() =>
    scope(() => {
      const copies = loads.map((load) => scope(() => copyFor(load)));
      loads.forEach(({ parameter }, i) => {
        copyInPlace(parameter, copies[i]!);
        copies[i]!.dispose();
      });
    }),
  );
}

/**
 * The same for a module of `deferWeights` whose weights have not been used, one parameter at a time: none is drawn, and what fails
 * leaves some of them filled.
 */
export function fillParameters(loads: readonly StateLoad[]): void {
  noGrad(() => {
    for (const load of loads) scope(() => fillDeferred(load.parameter, keep(ownMemoryFor(load))));
  });
}

/** A tensor of its own memory: a part of one that was read, as the queries' of joined weights, shares it with the others. */
function ownMemoryFor(load: StateLoad): Tensor {
  const values = contiguous(copyFor(load));
  return values.storage.byteLength === values.byteLength ? values : copy(values);
}

function copyFor({ name, parameter: { device, dtype }, source }: StateLoad): Tensor {
  const read = source.read(device);
  const beyond = valueBeyond(read, dtype);
  if (beyond === null) return cast(read, dtype);
  throw new StateError(
    `loading "${name}": it holds ${beyond} in ${read.dtype}, which is beyond ${dtype}, the dtype of its parameter; scale or ` +
      'clamp the values, or build the model in a wider dtype.',
  );
}

function namesByParameter(
  names: Iterable<readonly [name: string, parameter: Tensor]>,
  sources: ReadonlyMap<string, StateSource>,
): NamedParameter[] {
  const byParameter = new Map<Tensor, NamedParameter>();
  for (const [name, parameter] of names) {
    // A deferred weight is not asked for: it would be drawn.
    if (parameter.isDisposed || !parameter.storage.isAway) parameter.assertAlive(`loading "${name}"`);
    let named = byParameter.get(parameter);
    if (!named) byParameter.set(parameter, (named = { parameter, names: [], present: [] }));
    named.names.push(name);
    if (!sources.has(name)) continue;
    checkWritable(name, parameter);
    named.present.push(name);
  }
  return [...byParameter.values()];
}

/** Before the first parameter is written: a write to this one would throw. */
function checkWritable(name: string, { shape, strides }: Tensor): void {
  if (!shape.some((length, i) => length > 1 && strides[i] === 0)) return;
  throw new StateError(
    `loading "${name}": several elements of the parameter ${formatShape(shape)} lie at one place, as after expand(); build the ` +
      'module with a contiguous() copy.',
  );
}

function misfitsOf(
  { parameter, present }: NamedParameter,
  sources: ReadonlyMap<string, StateSource>,
): string[] {
  const misfits = present.flatMap((name) => {
    const { shape, dtype } = sources.get(name)!;
    const [theirs, ours] = [shape, parameter.shape].map(formatShape);
    if (theirs !== ours) return [`${name} is ${theirs}, the model's ${ours}`];
    if (isFloatingPoint(dtype) !== isFloatingPoint(parameter.dtype))
      return [`${name} is ${dtype}, the model's ${parameter.dtype}`];
    return [];
  });
  if (misfits.length > 0) return misfits;
  const [first, ...others] = present;
  return others
    .filter((name) => !sameValues(sources.get(first!)!, sources.get(name)!))
    .map((name) => `${first} and ${name} differ, and are one parameter of the model`);
}

function sameValues(a: StateSource, b: StateSource): boolean {
  if (a === b) return true;
  if (a.dtype !== b.dtype) return false;
  const cpu = device('cpu');
  return scope(() => {
    const [bytesOfA, bytesOfB] = [a, b].map((source) => {
      const { buffer, byteOffset, byteLength } = source.read(cpu).toTypedArray();
      return Buffer.from(buffer, byteOffset, byteLength);
    });
    return bytesOfA!.equals(bytesOfB!);
  });
}
