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
import { graphOf } from './graph/graph-of-trace.ts';
import type { Binding, ExecutableOptions, Executable, ExecutableFacts } from './executable/executable.ts';
import { type Operand, type Graph, type StorageSource, writtenArguments } from './graph/graph.ts';
import { makeExecutable } from './make-executable.ts';
import { orderedCalls } from './graph/ordered-effects.ts';
import { Slot, copiedOperands, resultSlots } from './graph/result-slots.ts';
import { contiguousCopy, ownConstants, copyOfArgument, writeBack } from './trace/argument-copies.ts';
import type { Trace } from './trace/trace.ts';
import { mapInstances } from './trace/values.ts';

/** A storage whose place differs from run to run. */
interface GivenStorage {
  readonly number: number;
  readonly source: Extract<StorageSource, { readonly kind: 'argument' | 'gradient' }>;
}

/** One specialization of a compiled function. */
export interface CompileExplanation extends ExecutableFacts {
  /** Of the function; empty if it has none. */
  readonly name: string;
  readonly device: string;
  /** Ops that the function called, and how many of them are not dead. */
  readonly tracedCalls: number;
  readonly calls: number;
  /** Peak bytes of what the function made, run eagerly. */
  readonly eagerPeakBytes: number;
}

/** A function compiled for one signature: its executable, what that depends on, and how results and gradients are delivered. */
export class Specialization {
  readonly graph: Graph;
  readonly #executable: Executable;
  readonly #interpreter: Executable;
  /** The function's result, with slots in place of its tensors. */
  readonly #result: unknown;
  readonly #gradients: readonly GradientResult[];
  /** The results and gradients that are copied after a run. */
  readonly #copied: readonly Operand[];
  /** Leaves whose gradients the graph reads. */
  readonly #readGradients: ReadonlySet<Tensor>;
  readonly #externalMemory: ExternalMemory;
  readonly #state: CapturedState;
  readonly #live: readonly (() => unknown)[];
  readonly #resources: OwnedResources;
  readonly #writes: ExternalWrites;
  readonly #writtenArguments: readonly number[];
  /** Captured storages and constants, and, during a run, the storages given for it. */
  readonly #bindings = new Map<number, Binding>();
  /** What each run is given. */
  readonly #given: readonly GivenStorage[];
  /** While it runs, or checks whether it fits. */
  #isInUse = false;
  #isDisposed = false;
  /** Whether all ranks that take part in its calls with effects have compiled the same. */
  #isAgreed = false;

  /**
   * From the trace, with at least one op, of the function `name`, and its result, which has passed `checkResult`. Throws a
   * CompileError for tensors in the result that a replay could not give.
   */
  constructor(name: string, trace: Trace, result: unknown, options: ExecutableOptions) {
    const { template, slots } = resultSlots(trace, result);
    this.#result = template;
    this.#gradients = gradientResults(trace);
    ownConstants(trace);
    this.graph = graphOf(
      name,
      trace,
      slots.map(({ operand }) => operand),
      this.#gradients,
    );
    this.#copied = copiedOperands(this.graph, slots, this.#gradients);
    this.#readGradients = new Set(
      this.graph.storages.flatMap(({ source }) => (source.kind === 'gradient' ? [source.leaf] : [])),
    );
    this.#externalMemory = new ExternalMemory(this.graph);
    this.#writtenArguments = writtenArguments(this.graph);
    const { storages } = this.graph;
    this.#given = storages.flatMap(({ source }, number) =>
      source.kind === 'argument' || source.kind === 'gradient' ? [{ number, source }] : [],
    );
    storages.forEach(({ source }, number) => {
      if ('storage' in source) this.#bindings.set(number, { storage: source.storage, byteOffset: 0 });
    });
    this.#executable = makeExecutable(this.graph, options);
    this.#interpreter = new Interpreter(this.graph);
    // From here on nothing may fail: these watch storages until they are disposed of.
    this.#writes = new ExternalWrites(this.graph);
    this.#state = new CapturedState(trace, storages);
    this.#live = trace.live;
    this.#resources = {
      executable: this.#executable,
      watched: this.#state.watched,
      writes: this.#writes,
      storages: storages.flatMap(({ source }) => ('storage' in source ? [source.storage] : [])),
    };
    releaseWhenDropped(this, this.#resources);
  }

  /**
   * Whether a replay would do what the function does now: what it depends on besides its arguments is unchanged. Call it only
   * while `isAlive`. False inside a run of its own (called from an observer, or while live attributes are asked for), and
   * once the check itself, which calls users' code, has disposed of it.
   */
  get fits(): boolean {
    return !this.#isInUse && this.#using(() => this.#state.isSame) && !this.#isDisposed;
  }

  /** False once a captured tensor has been freed or replaced. */
  get isAlive(): boolean {
    return this.#state.isAlive;
  }

  explain(): CompileExplanation {
    const { name, device, tracedCalls, calls, eagerPeakBytes } = this.graph;
    const facts = this.#executable.facts();
    return { name, device: device.label, tracedCalls, calls: calls.length, eagerPeakBytes, ...facts };
  }

  run(tensors: readonly Tensor[]): unknown {
    // One of them may be a gradient that the run drops.
    const given = tensors.map(({ storage }) => storage.retain());
    try {
      return this.#using(() => scope(() => this.#runOn(tensors)));
    } finally {
      for (const storage of given) storage.release();
    }
  }

  /** Runs what calls users' code, such as observers; if that disposes of the specialization, it is freed afterwards. */
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
    this.#agree();
    this.#externalMemory.check(tensors);
    const argumentCopies: Tensor[] = [];
    this.#bind(tensors, argumentCopies);
    const bindings: ReadonlyMap<number, Binding> = this.#bindings;
    this.#writes.checkHolds(bindings);
    const attributes = new PerRunAttributes(this.#live);
    const executable = mustSeeOps(this.#executable.tellsReplays) ? this.#interpreter : this.#executable;
    // After the run nothing may fail, as its effects on counts cannot be undone: so this memory is taken before.
    const copies = this.#memoryOfCopies();
    this.#forgetReplacedGradients();
    const writtenBack = () => writeBack(this.#writtenArguments, tensors, argumentCopies);
    const made = this.#writing(executable, bindings, attributes, writtenBack);
    try {
      attributes.all();
      this.#writes.note(bindings);
      executable.writesNoted?.();
      writtenBack();
      return this.#deliver(made, bindings, copies);
    } finally {
      for (const storage of made.values()) storage.release();
    }
  }

  /** Before the first replay: in each order, in the order in which their calls begin. */
  #agree(): void {
    if (this.#isAgreed) return;
    for (const [order, calls] of orderedCalls(this.graph.calls))
      if (calls.length > 0) order.agree(this.graph.name, calls);
    this.#isAgreed = true;
  }

  /** Runs it. What a failed run may have written is recorded as written, and copied back to the caller's tensors. */
  #writing(
    executable: Executable,
    bindings: ReadonlyMap<number, Binding>,
    attributes: PerRunAttributes,
    writtenBack: () => void,
  ): Map<number, Storage> {
    try {
      return executable.run(bindings, attributes);
    } catch (error) {
      if (!executable.wroteNothing) {
        this.#writes.note(bindings);
        writtenBack();
      }
      throw error;
    }
  }

  /** Frees what it holds, after the run under way if there is one. */
  dispose(): void {
    this.#isDisposed = true;
    if (!this.#isInUse) this.#free();
  }

  #free(): void {
    releaseResources(this, this.#resources);
  }

  /** Binds what is given for this run, replacing the bindings of the run before. */
  #bind(tensors: readonly Tensor[], argumentCopies: Tensor[]): void {
    for (const { number, source } of this.#given) {
      if (source.kind === 'gradient') {
        const grad = source.leaf.grad!;
        grad.assertAlive('compile: a gradient');
        this.#bindings.set(number, { storage: grad.storage, byteOffset: 0 });
        continue;
      }
      const x = tensors[source.index]!;
      if (!this.graph.written.has(number)) {
        const byteOffset = x.byteLength === 0 ? 0 : byteOffsetOf(x);
        this.#bindings.set(number, { storage: x.storage, byteOffset });
        continue;
      }
      const argumentCopy = copyOfArgument(x);
      argumentCopies[source.index] = argumentCopy;
      this.#bindings.set(number, { storage: argumentCopy.storage, byteOffset: 0 });
    }
  }

  /** Drops gradients that the graph replaces without reading them: their memory may serve the new ones. */
  #forgetReplacedGradients(): void {
    for (const { leaf, disposes } of this.#gradients) {
      if (this.#readGradients.has(leaf)) continue;
      if (disposes) leaf.grad?.dispose();
      leaf.grad = null;
    }
  }

  #memoryOfCopies(): Map<Operand, Tensor> {
    const { device } = this.graph;
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
