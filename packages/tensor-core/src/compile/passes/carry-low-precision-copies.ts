import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { extentOf } from '../../tensor/storage/extent.ts';
import type { Region } from '../../tensor/storage/write-versions.ts';
import { copiedOutputs, withCopies } from './copying-op.ts';
import { isCast } from './is-op.ts';
import { lastReadsOf } from './operands.ts';

/** A call of the graph that casts a whole parameter. */
interface ParameterCast {
  readonly call: Call;
  readonly index: number;
  readonly parameter: Operand;
  readonly output: Operand;
}

interface Write {
  readonly index: number;
  readonly region: Region;
  /** Whether the op can also write a copy of the region. */
  readonly copies: boolean;
}

/** Where operands of a storage move to: another storage, `distance` elements further on. */
interface Move {
  readonly storage: number;
  readonly distance: number;
}

/**
 * Keeps casts of parameters from run to run: an update of a parameter also writes its low-precision copy, so that the copy
 * always equals a cast of the parameter. The executable makes the copies before the first run, and again after someone else
 * has written a parameter.
 *
 * Casts are dropped by storage: all those that write a storage, of one parameter or of several side by side, if nothing else
 * writes it. Their parameters may be written only by such updates, and not between a cast and the last read of its storage.
 * If there are casts to both float16 and bfloat16, those to the dtype that comes first are dropped; if a parameter has
 * several arrangements, those of the largest one. The parameters `notCarried`, by their `parameterKeys`, are cast in every
 * run.
 */
export function carryLowPrecisionCopies(graph: Graph, notCarried: ReadonlySet<string> = new Set()): Graph {
  const uses = new Uses(graph);
  const found = storagesOfCasts(graph, uses).filter((casts) =>
    casts.every(({ parameter }) => !notCarried.has(keyOf(parameter))),
  );
  const dtype = found[0]?.[0]!.output.dtype;
  const sameDType = found.filter((casts) => casts.every(({ output }) => output.dtype === dtype));
  const plan = new Plan();
  for (const casts of sameDType.toSorted((x, y) => y.length - x.length)) plan.tryAdd(casts);
  return plan.apply(graph);
}

/** Keys of the parameters that these casts read, valid in one graph and in what passes make of it. */
export function parameterKeys(casts: readonly Call[]): string[] {
  return casts.map(({ inputs }) => keyOf(inputs[0]!));
}

/** The casts that could be dropped, by storage, in the graph's order. */
function storagesOfCasts(graph: Graph, uses: Uses): ParameterCast[][] {
  const casts = graph.calls.flatMap((call, index) => {
    if (!isCast(call.op)) return [];
    const [parameter, output] = [call.inputs[0]!, call.outputs[0]!];
    return isParameter(graph, parameter) && isLower(output) ? [{ call, index, parameter, output }] : [];
  });
  return [...Map.groupBy(casts, ({ output }) => output.storage).values()].filter(
    (ofOne) => uses.areAllOf(ofOne) && ofOne.every((cast) => uses.staysEqual(cast)),
  );
}

function isParameter({ storages }: Graph, operand: Operand): boolean {
  const { source } = storages[operand.storage]!;
  if (source.kind !== 'captured' || !operand.isContiguous || operand.size === 0) return false;
  const region = extentOf(operand);
  const around = source.storage.parameterAround(region);
  return operand.dtype === 'float32' && around !== null && isSameRegion(around, region);
}

function isLower({ dtype, isContiguous }: Operand): boolean {
  return isContiguous && (dtype === 'float16' || dtype === 'bfloat16');
}

/** Which calls read and write the storages. */
class Uses {
  readonly #graph: Graph;
  readonly #lastReads: ReadonlyMap<number, number>;
  readonly #writes = new Map<number, Write[]>();

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#lastReads = lastReadsOf(graph.calls);
    graph.calls.forEach(({ op, outputs }, index) => {
      outputs.forEach((output, i) => {
        const copies = i < copiedOutputs(op) && output.isContiguous && output.dtype === 'float32';
        this.#writesOf(output.storage).push({ index, region: extentOf(output), copies });
      });
    });
  }

  /** Whether these casts are all that writes their storage, each a part of its own, and it does not outlive the run. */
  areAllOf(casts: readonly ParameterCast[]): boolean {
    const { storage } = casts[0]!.output;
    const regions = casts.map(({ output }) => extentOf(output)).sort((x, y) => x.start - y.start);
    return (
      isIntermediate(this.#graph, storage) &&
      this.#writesOf(storage).length === casts.length &&
      regions.every(({ start }, i) => i === 0 || regions[i - 1]!.end <= start) &&
      new Set(casts.map(({ parameter }) => keyOf(parameter))).size === casts.length
    );
  }

  /** Whether a copy written by every update of the parameter equals what the cast would have given its readers. */
  staysEqual({ index, parameter, output }: ParameterCast): boolean {
    const region = extentOf(parameter);
    const lastRead = this.#lastReads.get(output.storage) ?? index;
    return this.#writesOf(parameter.storage)
      .filter((write) => write.region.start < region.end && region.start < write.region.end)
      .every(
        (write) =>
          write.copies &&
          isSameRegion(write.region, region) &&
          (write.index < index || write.index > lastRead),
      );
  }

  #writesOf(storage: number): Write[] {
    let writes = this.#writes.get(storage);
    if (!writes) this.#writes.set(storage, (writes = []));
    return writes;
  }
}

/** Which storages become copies, and which become parts of those. */
class Plan {
  /** By the storage of each copy, the casts that make it, and those that would repeat parts of it. */
  readonly #copies = new Map<number, { readonly casts: Call[]; readonly repeated: Call[] }>();
  /** The one copy of each parameter. */
  readonly #places = new Map<string, Operand>();
  readonly #moves = new Map<number, Move>();

  /** Adds the casts of one storage, unless their parameters have copies in another arrangement. */
  tryAdd(casts: readonly ParameterCast[]): void {
    const calls = casts.map(({ call }) => call);
    const { storage } = casts[0]!.output;
    const known = casts.flatMap(({ parameter, output }) => {
      const place = this.#places.get(keyOf(parameter));
      return place ? [{ storage: place.storage, distance: place.offset - output.offset }] : [];
    });
    if (known.length === 0) {
      this.#copies.set(storage, { casts: calls, repeated: [] });
      for (const { parameter, output } of casts) this.#places.set(keyOf(parameter), output);
      return;
    }
    const [move] = known as [Move];
    const lieAlike = known.every((each) => each.storage === move.storage && each.distance === move.distance);
    if (known.length < casts.length || !lieAlike) return;
    this.#moves.set(storage, move);
    this.#copies.get(move.storage)!.repeated.push(...calls);
  }

  apply(graph: Graph): Graph {
    if (this.#copies.size === 0) return graph;
    const left = new Set(
      [...this.#copies.values()].flatMap(({ casts, repeated }) => [...casts, ...repeated]),
    );
    const calls = graph.calls
      .filter((call) => !left.has(call))
      .map((call) =>
        withCopiesOf({ ...call, inputs: call.inputs.map((input) => this.#moved(input)) }, this.#places),
      );
    const storages = graph.storages.map((storage, number) => {
      const copy = this.#copies.get(number);
      return copy ? { ...storage, source: { kind: 'copy', ...copy } as const } : storage;
    });
    return { ...graph, calls, storages };
  }

  #moved(operand: Operand): Operand {
    const move = this.#moves.get(operand.storage);
    if (!move) return operand;
    return { ...operand, storage: move.storage, offset: operand.offset + move.distance };
  }
}

/** Makes a call that writes parameters also write their copies. */
function withCopiesOf(call: Call, copies: ReadonlyMap<string, Operand>): Call {
  const written = call.outputs.slice(0, copiedOutputs(call.op));
  return withCopies(
    call,
    written.map((output) => copies.get(keyOf(output)) ?? null),
  );
}

function keyOf(operand: Operand): string {
  const { start, end } = extentOf(operand);
  return `${operand.storage}:${start}-${end}`;
}

function isSameRegion(a: Region, b: Region): boolean {
  return a.start === b.start && a.end === b.end;
}
