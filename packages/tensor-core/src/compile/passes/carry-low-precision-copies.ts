import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { extentOf } from '../../tensor/storage/extent.ts';
import type { Region } from '../../tensor/storage/write-versions.ts';
import { copiedOutputs, withCopies } from './copying-op.ts';
import { isCast } from './is-op.ts';
import { lastReadsOf } from './operands.ts';

/** A call of the program that casts all of a parameter. */
interface ParameterCast {
  readonly call: Call;
  readonly index: number;
  readonly parameter: Operand;
  readonly output: Operand;
}

interface Write {
  readonly index: number;
  readonly region: Region;
  /** Whether the op can write a copy of the region too. */
  readonly copies: boolean;
}

/** Where operands in a storage are found now, and how many elements further on. */
interface Move {
  readonly storage: number;
  readonly distance: number;
}

/**
 * A program whose casts of parameters are kept from run to run: what updates a parameter writes its copy in lower precision
 * in the same pass, so that a copy is at all times what a cast of its parameter would be. Who runs the program makes the
 * copies when it begins, and again when somebody else has written the parameter.
 *
 * Casts are left out by storages that they alone write, one parameter or several side by side. Their parameters must be
 * written by nothing but such updates, and not between a cast and the last reader of its storage. Where float16 and bfloat16
 * meet, those of the dtype that comes first go; of several arrangements of one parameter, the largest. Copies of the
 * parameters `notCarried`, by their `parameterKeys`, are cast in every run.
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

/** What stands for the parameters that these casts read, in one program and in what passes make of it. */
export function parameterKeys(casts: readonly Call[]): string[] {
  return casts.map(({ inputs }) => keyOf(inputs[0]!));
}

/** The casts of each storage that could be carried, in the program's order. */
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

/** Who reads and writes a program's storages, and when. */
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

  /** Whether these casts, to one storage, are all that writes it, each a part of its own, and nobody keeps it. */
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

  /** Whether a copy that every update of the parameter writes holds what the cast would have given its readers. */
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

/** Which storages become copies, and which are found in them. */
class Plan {
  /** The casts that make the copies, by the copies' storages, and those that would make parts of them again. */
  readonly #copies = new Map<number, { readonly casts: Call[]; readonly repeated: Call[] }>();
  /** The one copy of each parameter. */
  readonly #places = new Map<string, Operand>();
  readonly #moves = new Map<number, Move>();

  /** Takes a storage of casts in, unless its parameters have copies that lie otherwise. */
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

/** A call that writes parameters also writes those of their copies that there are. */
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
