import { mustSeeOps } from '../op/observers.ts';
import { keep, scope } from '../tensor/lifetime/scope.ts';
import type { Storage } from '../tensor/storage/storage.ts';
import { Tensor } from '../tensor/tensor.ts';
import { ExternalMemory } from './trace/external-memory.ts';
import { CapturedState } from './captured-state.ts';
import { ExternalWrites } from './external-writes.ts';
import { type GradientResult, gradientResults } from './graph/gradient-results.ts';
import { type OwnedResources, releaseResources, releaseWhenDropped } from './owned-resources.ts';
import { Interpreter } from './executable/interpreter.ts';
import { PerRunAttributes } from './executable/per-run-attributes.ts';
import { tensorIn } from './executable/run-memory.ts';
import { programOf } from './graph/graph-of-trace.ts';
import type { Binding, PrepareOptions, ProgramRunner, RunnerFacts } from './executable/executable.ts';
import { type Operand, type Program, type StorageSource, writtenArguments } from './graph/graph.ts';
import { prepare } from './make-executable.ts';
import { Slot, copiedOperands, resultSlots } from './graph/result-slots.ts';
import { contiguousCopy, ownConstants, copyOfArgument, writeBack } from './trace/argument-copies.ts';
import type { Trace } from './trace/trace.ts';
import { mapInstances } from './trace/values.ts';

/** A storage that lies elsewhere in each run. */
interface GivenStorage {
  readonly number: number;
  readonly source: Extract<StorageSource, { readonly kind: 'argument' | 'gradient' }>;
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

/** A call of a function that can be repeated by its ops alone. */
export class CompiledProgram {
  readonly program: Program;
  readonly #runner: ProgramRunner;
  readonly #interpreter: ProgramRunner;
  /** The function's result, with slots in the place of its tensors. */
  readonly #result: unknown;
  readonly #gradients: readonly GradientResult[];
  /** Of results and gradients, those that are copied behind a run. */
  readonly #copied: readonly Operand[];
  /** Leaves whose gradients the program begins with. */
  readonly #readGradients: ReadonlySet<Tensor>;
  readonly #externalMemory: ExternalMemory;
  readonly #state: CapturedState;
  readonly #live: readonly (() => unknown)[];
  readonly #resources: OwnedResources;
  readonly #writes: ExternalWrites;
  readonly #writtenArguments: readonly number[];
  /** What lies where it lay, and, during a run, the storages that are given for it. */
  readonly #bindings = new Map<number, Binding>();
  /** The storages that are given for each run. */
  readonly #given: readonly GivenStorage[];
  /** While it runs, or is asked whether it fits. */
  #isInUse = false;
  #isDisposed = false;

  /**
   * Of what `trace`, with at least one op, has written down of the function of that name, and the function's result, of
   * which `checkResult` found nothing to say. Throws a CompileError for tensors in it that a replay could not give.
   */
  constructor(name: string, trace: Trace, result: unknown, options: PrepareOptions) {
    const { template, slots } = resultSlots(trace, result);
    this.#result = template;
    this.#gradients = gradientResults(trace);
    ownConstants(trace);
    this.program = programOf(
      name,
      trace,
      slots.map(({ operand }) => operand),
      this.#gradients,
    );
    this.#copied = copiedOperands(this.program, slots, this.#gradients);
    this.#readGradients = new Set(
      this.program.storages.flatMap(({ source }) => (source.kind === 'gradient' ? [source.leaf] : [])),
    );
    this.#externalMemory = new ExternalMemory(this.program);
    this.#writtenArguments = writtenArguments(this.program);
    const { storages } = this.program;
    this.#given = storages.flatMap(({ source }, number) =>
      source.kind === 'argument' || source.kind === 'gradient' ? [{ number, source }] : [],
    );
    storages.forEach(({ source }, number) => {
      if ('storage' in source) this.#bindings.set(number, { storage: source.storage, byteOffset: 0 });
    });
    this.#runner = prepare(this.program, options);
    this.#interpreter = new Interpreter(this.program);
    // From here on nothing may fail: these watch storages until the program is disposed of.
    this.#writes = new ExternalWrites(this.program);
    this.#state = new CapturedState(trace, storages);
    this.#live = trace.live;
    this.#resources = {
      runner: this.#runner,
      watched: this.#state.watched,
      writes: this.#writes,
      storages: storages.flatMap(({ source }) => ('storage' in source ? [source.storage] : [])),
    };
    releaseWhenDropped(this, this.#resources);
  }

  /**
   * Whether a run would do what the function does: what it depends on beside its arguments is as it was. Asked of those that
   * are alive. A run does not fit into one that is under way, from an observer or what asks for live attributes, nor after
   * what this asks has disposed of the program.
   */
  get fits(): boolean {
    return !this.#isInUse && this.#using(() => this.#state.isSame) && !this.#isDisposed;
  }

  /** False once a captured tensor has been freed or replaced. */
  get isAlive(): boolean {
    return this.#state.isAlive;
  }

  /** What became of the function. */
  explain(): ProgramExplanation {
    const { name, device, tracedCalls, calls, eagerPeakBytes } = this.program;
    const facts = this.#runner.facts();
    return { name, device: device.label, tracedCalls, calls: calls.length, eagerPeakBytes, ...facts };
  }

  run(tensors: readonly Tensor[]): unknown {
    // One of them may be the gradient that is forgotten.
    const given = tensors.map(({ storage }) => storage.retain());
    try {
      return this.#using(() => scope(() => this.#runOn(tensors)));
    } finally {
      for (const storage of given) storage.release();
    }
  }

  /** Runs what calls others' code, such as observers, which may dispose of the program: then it is freed behind that. */
  #using<T>(run: () => T): T {
    this.#isInUse = true;
    try {
      return run();
    } finally {
      this.#isInUse = false;
      if (this.#isDisposed) this.#free();
    }
  }

  #runOn(tensors: readonly Tensor[]): unknown {
    this.#externalMemory.check(tensors);
    const argumentCopies: Tensor[] = [];
    this.#bind(tensors, argumentCopies);
    const bindings: ReadonlyMap<number, Binding> = this.#bindings;
    this.#writes.checkHolds(bindings);
    const attributes = new PerRunAttributes(this.#live);
    const runner = mustSeeOps(this.#runner.tellsReplays) ? this.#interpreter : this.#runner;
    // Behind the run nothing may fail: what it has counted is counted.
    const copies = this.#memoryOfCopies();
    this.#forgetReplacedGradients();
    const writtenBack = () => writeBack(this.#writtenArguments, tensors, argumentCopies);
    const made = this.#writing(runner, bindings, attributes, writtenBack);
    try {
      attributes.all();
      this.#writes.note(bindings);
      runner.writesNoted?.();
      writtenBack();
      return this.#deliver(made, bindings, copies);
    } finally {
      for (const storage of made.values()) storage.release();
    }
  }

  /** Runs it; what a run that fails may have written counts as written, and goes to the caller's tensors. */
  #writing(
    runner: ProgramRunner,
    bindings: ReadonlyMap<number, Binding>,
    attributes: PerRunAttributes,
    writtenBack: () => void,
  ): Map<number, Storage> {
    try {
      return runner.run(bindings, attributes);
    } catch (error) {
      if (!runner.wroteNothing) {
        this.#writes.note(bindings);
        writtenBack();
      }
      throw error;
    }
  }

  /** Frees what it holds, once nothing uses it any more. */
  dispose(): void {
    this.#isDisposed = true;
    if (!this.#isInUse) this.#free();
  }

  #free(): void {
    releaseResources(this, this.#resources);
  }

  /** Binds what is given for this run, in the place of what was given for the one before. */
  #bind(tensors: readonly Tensor[], argumentCopies: Tensor[]): void {
    for (const { number, source } of this.#given) {
      if (source.kind === 'gradient') {
        const grad = source.leaf.grad!;
        grad.assertAlive('compile: a gradient');
        this.#bindings.set(number, { storage: grad.storage, byteOffset: 0 });
        continue;
      }
      const x = tensors[source.index]!;
      if (!this.program.written.has(number)) {
        const byteOffset = x.byteLength === 0 ? 0 : byteOffsetOf(x);
        this.#bindings.set(number, { storage: x.storage, byteOffset });
        continue;
      }
      const argumentCopy = copyOfArgument(x);
      argumentCopies[source.index] = argumentCopy;
      this.#bindings.set(number, { storage: argumentCopy.storage, byteOffset: 0 });
    }
  }

  /** Gradients that the program does not read make room for those that take their place. */
  #forgetReplacedGradients(): void {
    for (const { leaf, disposes } of this.#gradients) {
      if (this.#readGradients.has(leaf)) continue;
      if (disposes) leaf.grad?.dispose();
      leaf.grad = null;
    }
  }

  #memoryOfCopies(): Map<Operand, Tensor> {
    const { device } = this.program;
    return new Map(
      this.#copied.map((operand) => [operand, Tensor.allocate(device, operand.dtype, operand.shape)]),
    );
  }

  #deliver(
    made: ReadonlyMap<number, Storage>,
    bindings: ReadonlyMap<number, Binding>,
    copies: ReadonlyMap<Operand, Tensor>,
  ): unknown {
    const tensorAt = (operand: Operand) => {
      const given = bindings.get(operand.storage);
      if (given) return tensorIn(given.storage, given.byteOffset, operand);
      return tensorIn(made.get(operand.storage)!, 0, operand);
    };
    const ownTensorAt = (operand: Operand) => {
      const memory = copies.get(operand);
      return memory ? contiguousCopy(tensorAt(operand), memory) : tensorAt(operand);
    };
    for (const { leaf, operand, disposes } of this.#gradients) {
      const before = leaf.grad;
      leaf.grad = operand && keep(ownTensorAt(operand));
      if (disposes) before?.dispose();
    }
    return mapInstances(this.#result, Slot, ({ operand, found, isKept }) => {
      if (found) return found;
      const x = ownTensorAt(operand);
      return isKept ? keep(x) : x;
    });
  }
}

function byteOffsetOf({ address, storage }: Tensor): number {
  return address - storage.buffer.address;
}
