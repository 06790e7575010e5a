import { isGradEnabled, noGrad } from '../autograd/grad-mode.ts';
import { withoutAutocast } from '../autocast/autocast.ts';
import { CompileError, DeviceError } from '../errors.ts';
import { copy } from '../ops/copy/contiguous.ts';
import { copyInPlace } from '../ops/copy/in-place.ts';
import { mustSeeOps } from '../op/observers.ts';
import { formatShape, sameShape } from '../tensor/shape.ts';
import { keep, scope } from '../tensor/lifetime/scope.ts';
import { extentOf } from '../tensor/storage/extent.ts';
import type { Storage } from '../tensor/storage/storage.ts';
import type { Region } from '../tensor/storage/write-versions.ts';
import { Tensor } from '../tensor/tensor.ts';
import { withoutDeadCalls } from './dead-calls.ts';
import { Interpreter } from './interpreter.ts';
import type {
  Binding,
  Operand,
  PrepareOptions,
  Program,
  ProgramRunner,
  RunnerFacts,
  StorageSource,
} from './program.ts';
import { type Dependency, type Trace, type TouchedGradient, fillsStorage } from './trace.ts';
import { checkResult, mapInstances } from './values.ts';

/** A handle to a captured storage, and whether it required a gradient. */
interface CapturedHandle {
  readonly handle: Tensor;
  readonly requiresGrad: boolean;
}

/** What the program writes of a given storage: of this one, or of that which is bound to the number. */
interface GivenWrite {
  readonly number: number;
  readonly region: Region;
  readonly storage: Storage | null;
}

/** A storage that lies elsewhere in each run. */
interface GivenStorage {
  readonly number: number;
  readonly source: Extract<StorageSource, { readonly kind: 'argument' | 'gradient' }>;
}

/** The gradient that a leaf has after a run; null for none. */
interface GradientResult {
  readonly leaf: Tensor;
  readonly operand: Operand | null;
}

/** One program of a compiled function. */
export interface ProgramExplanation extends RunnerFacts {
  /** Of the function; empty for one without a name. */
  readonly name: string;
  readonly device: string;
  /** Ops that the function called, and those of them that somebody needs. */
  readonly tracedCalls: number;
  readonly calls: number;
  /** The most bytes that what it made held at a time, run eagerly. */
  readonly eagerPeakBytes: number;
}

/** The place of a tensor in a function's result. */
class Slot {
  readonly operand: Operand;

  constructor(operand: Operand) {
    this.operand = operand;
  }
}

/** A call of a function that can be repeated by its ops alone. */
export class CompiledProgram {
  readonly program: Program;
  readonly #runner: ProgramRunner;
  readonly #interpreter: ProgramRunner;
  readonly #result: unknown;
  readonly #gradients: readonly GradientResult[];
  /** Leaves whose gradients the program begins with. */
  readonly #readGradients: ReadonlySet<Tensor>;
  readonly #touched: readonly TouchedGradient[];
  /** What it writes of given storages. */
  readonly #writes: readonly GivenWrite[];
  readonly #writtenArguments: readonly number[];
  readonly #dependencies: readonly Dependency[];
  readonly #handles: readonly CapturedHandle[];
  /** Captured storages. */
  readonly #captured: readonly Storage[];
  /** What lies where it lay, and, during a run, the storages that are given for it. */
  readonly #bindings = new Map<number, Binding>();
  /** The storages that are given for each run. */
  readonly #given: readonly GivenStorage[];

  /**
   * Of what `trace`, with at least one op, has written down of the function of that name, and the function's result.
   * Throws a CompileError for results that a replay could not give.
   */
  constructor(name: string, trace: Trace, result: unknown, options: PrepareOptions) {
    checkResult(result);
    const slots: Slot[] = [];
    this.#result = mapInstances(result, Tensor, (x) => {
      const slot = new Slot(operandOfResult(trace, x));
      slots.push(slot);
      return slot;
    });
    this.#touched = [...trace.gradients.values()];
    this.#gradients = gradientResults(trace);
    this.program = programOf(
      name,
      trace,
      slots.map(({ operand }) => operand),
      this.#gradients,
    );
    this.#readGradients = new Set(
      this.program.storages.flatMap(({ source }) => (source.kind === 'gradient' ? [source.leaf] : [])),
    );
    this.#writes = writesOf(this.program);
    this.#writtenArguments = writtenArguments(this.program);
    this.#dependencies = trace.dependencies;
    this.#handles = [...trace.captured]
      .filter(({ isDisposed }) => !isDisposed)
      .map((handle) => ({ handle, requiresGrad: handle.requiresGrad }));
    const { storages } = this.program;
    this.#captured = storages.flatMap(({ source }) => (source.kind === 'captured' ? [source.storage] : []));
    this.#given = storages.flatMap(({ source }, number) =>
      source.kind === 'argument' || source.kind === 'gradient' ? [{ number, source }] : [],
    );
    storages.forEach(({ source }, number) => {
      if ('storage' in source) this.#bindings.set(number, { storage: source.storage, byteOffset: 0 });
    });
    this.#runner = this.program.device.prepare(this.program, options);
    this.#interpreter = new Interpreter(this.program);
  }

  /** Whether what the program depends on beside its arguments is as it was; asked of those that are alive. */
  get fits(): boolean {
    return (
      this.#dependencies.every(({ read, value }) => Object.is(read(), value)) &&
      this.#handles.every(
        ({ handle, requiresGrad }) => !handle.isDisposed && handle.requiresGrad === requiresGrad,
      ) &&
      this.#touched.every((touched) => hasSuchGradient(touched))
    );
  }

  /** False once a captured tensor has been freed or replaced: nobody but the program has it. */
  get isAlive(): boolean {
    return this.#captured.every(({ handles }) => handles > 0);
  }

  /** What became of the function. */
  explain(): ProgramExplanation {
    const { name, device, tracedCalls, calls, eagerPeakBytes } = this.program;
    const facts = this.#runner.facts();
    return { name, device: device.label, tracedCalls, calls: calls.length, eagerPeakBytes, ...facts };
  }

  run(tensors: readonly Tensor[]): unknown {
    const { live } = this.program;
    return scope(() => {
      const attributes = live.map((next) => next());
      const standIns = new Map<number, Tensor>();
      this.#bind(tensors, standIns);
      const bindings: ReadonlyMap<number, Binding> = this.#bindings;
      const runner = mustSeeOps(this.#runner.tellsReplays) ? this.#interpreter : this.#runner;
      this.#checkHolds();
      this.#forgetReplacedGradients();
      const made = runner.run(bindings, attributes);
      try {
        for (const write of this.#writes) this.#targetOf(write).noteWrite(write.region);
        runner.writesNoted?.();
        writeBack(this.#writtenArguments, tensors, (index) => standIns.get(index)!);
        return this.#deliver(made, bindings);
      } finally {
        for (const storage of made.values()) storage.release();
      }
    });
  }

  dispose(): void {
    this.#runner.dispose();
    for (const { source } of this.program.storages) if ('storage' in source) source.storage.release();
  }

  /** Those that were given for the run before go. */
  #bind(tensors: readonly Tensor[], standIns: Map<number, Tensor>): void {
    for (const { number, source } of this.#given) {
      if (source.kind === 'gradient') {
        this.#bindings.set(number, { storage: source.leaf.grad!.storage, byteOffset: 0 });
        continue;
      }
      const x = tensors[source.index]!;
      if (x.isContiguous && !this.program.written.has(number)) {
        const byteOffset = x.byteLength === 0 ? 0 : byteOffsetOf(x);
        this.#bindings.set(number, { storage: x.storage, byteOffset });
        continue;
      }
      const standIn = standInFor(x);
      standIns.set(source.index, standIn);
      this.#bindings.set(number, { storage: standIn.storage, byteOffset: 0 });
    }
  }

  /** Throws a DeviceError where something under way, such as a collective, works on memory that the program writes. */
  #checkHolds(): void {
    for (const write of this.#writes) {
      const { region } = write;
      const [hold] = this.#targetOf(write).holdsOn(region);
      if (!hold) continue;
      throw new DeviceError(
        `compile: the program writes ${region.end - region.start} bytes that ${hold.holder} works on; wait for it first.`,
      );
    }
  }

  #targetOf({ number, storage }: GivenWrite): Storage {
    return storage ?? (this.#bindings.get(number)!.storage as Storage);
  }

  /** Gradients that the program does not read make room for those that take their place. */
  #forgetReplacedGradients(): void {
    for (const { leaf } of this.#gradients) {
      if (this.#readGradients.has(leaf)) continue;
      leaf.grad?.dispose();
      leaf.grad = null;
    }
  }

  #deliver(made: ReadonlyMap<number, Storage>, bindings: ReadonlyMap<number, Binding>): unknown {
    const tensorAt = ({ storage, dtype, shape, strides, offset }: Operand) => {
      const memory = made.get(storage) ?? (bindings.get(storage)!.storage as Storage);
      return new Tensor(memory.retain(), dtype, shape, strides, offset);
    };
    for (const { leaf, operand } of this.#gradients) {
      const before = leaf.grad;
      leaf.grad = operand && keep(tensorAt(operand));
      before?.dispose();
    }
    // The next run may write a gradient's storage again; a result is the caller's.
    const ownTensorAt = (operand: Operand) =>
      this.program.gradients.has(operand.storage) ? standInFor(tensorAt(operand)) : tensorAt(operand);
    return mapInstances(this.#result, Slot, ({ operand }) => ownTensorAt(operand));
  }
}

/** A contiguous copy for a function to work on in the place of its caller's tensor. */
export function standInFor(x: Tensor): Tensor {
  return noGrad(() => withoutAutocast(() => copy(x)));
}

/** What was written into arguments goes to the caller's tensors, from what stood in for them. */
export function writeBack(
  indices: readonly number[],
  tensors: readonly Tensor[],
  standIn: (index: number) => Tensor,
): void {
  for (const index of indices) noGrad(() => copyInPlace(tensors[index]!, standIn(index)));
}

/** The arguments, by their indices, that a program writes. */
export function writtenArguments({ storages, written }: Pick<Program, 'storages' | 'written'>): number[] {
  return [...written].flatMap((number) => {
    const { source } = storages[number]!;
    return source.kind === 'argument' ? [source.index] : [];
  });
}

function byteOffsetOf({ address, storage }: Tensor): number {
  return address - storage.buffer.address;
}

/** The regions of given storages that calls write, each once. */
function writesOf({ calls, written, storages }: Program): GivenWrite[] {
  const outputs = calls.flatMap((call) => call.outputs).filter(({ storage }) => written.has(storage));
  const writes = outputs.map((output) => {
    const { source } = storages[output.storage]!;
    const storage = 'storage' in source ? source.storage : null;
    return { number: output.storage, region: extentOf(output), storage };
  });
  const byPlace = new Map(
    writes.map((write) => [`${write.number}:${write.region.start}-${write.region.end}`, write]),
  );
  return [...byPlace.values()];
}

function operandOfResult(trace: Trace, x: Tensor): Operand {
  x.assertAlive('compile: the result');
  if (x.requiresGrad && !x.isLeaf && isGradEnabled()) {
    throw new CompileError(
      `compile: the result ${formatShape(x.shape)} has a history, and a replay records none: call backward() inside the ` +
        'compiled function, or run it in noGrad(), or return detach() of it.',
    );
  }
  return trace.operand(x);
}

function gradientResults(trace: Trace): GradientResult[] {
  return [...trace.gradients.values()]
    .filter(({ leaf, before }) => !leaf.isDisposed && leaf.grad !== before)
    .map(({ leaf }) => ({ leaf, operand: leaf.grad && trace.operand(leaf.grad) }));
}

function programOf(
  name: string,
  trace: Trace,
  results: readonly Operand[],
  gradientResults: readonly GradientResult[],
): Program {
  const { storages, written, live, calls } = trace;
  const device = trace.device!;
  const isMade = (storage: number) => storages[storage]!.source.kind === 'made';
  const gradients = new Map(
    gradientResults.flatMap(({ leaf, operand }) =>
      operand && isMade(operand.storage) ? [[operand.storage, leaf] as const] : [],
    ),
  );
  const kept = new Set([...results.map(({ storage }) => storage).filter(isMade), ...gradients.keys()]);
  const alive = withoutDeadCalls({ calls, storages, kept });
  const facts = { tracedCalls: calls.length, eagerPeakBytes: trace.peakBytes };
  return { name, device, storages, written, kept, gradients, live, calls: alive, ...facts };
}

function hasSuchGradient({ leaf, before, within }: TouchedGradient): boolean {
  const { grad } = leaf;
  if (before === null || grad === null) return before === grad;
  if (!sameShape(before.shape, grad.shape)) return false;
  return within ? grad.storage === within && grad.offset === before.offset : fillsStorage(grad);
}
