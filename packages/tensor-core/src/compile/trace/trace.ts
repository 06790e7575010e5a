import type { Device } from '../../tensor/device.ts';
import { CompileError } from '../../base/errors.ts';
import { userPlace } from '@roofline/cuda/host';
import { perRunSourceOf } from '../../op/per-run-attributes.ts';
import type { Observer } from '../../op/observers.ts';
import type { ComputeOp } from '../../op/op.ts';
import { currentOpenRange } from '../../tensor/ranges/range.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { formatShape } from '../../base/shape.ts';
import { shareMemory } from '../../tensor/storage/overlap.ts';
import { type Storage, storagesMade } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Tracing } from '../../tensor/tracing.ts';
import { checkWrittenArgument, sharedMemoryError } from './external-memory.ts';
import { HandleChanges } from './handle-changes.ts';
import type { Call, Operand, GraphStorage, StorageSource } from '../graph/graph.ts';
import { TracedGradients } from './traced-gradients.ts';

/** Something other than tensors that the function depended on. */
export interface Dependency {
  readonly read: () => unknown;
  readonly value: unknown;
}

/** Functions whose tensors follow from numbers alone: constants of the graph, like the 2 of `mul(x, 2)`. */
const ofNumbersAlone: ReadonlySet<string> = new Set(['arange', 'linspace']);

interface TraceOptions {
  /** The caller's tensors of the argument copies, if what the function writes is copied back to them. */
  readonly originals?: readonly Tensor[];
  /** Whether errors may have to say where a tensor was made. */
  readonly namesMakers?: boolean;
  /** What errors begin with. Default `compile`. */
  readonly owner?: string;
}

/** Records what a function does while it runs: its ops, by storage, and what else it reads. */
export class Trace implements Tracing, Observer {
  readonly calls: Call[] = [];
  readonly storages: GraphStorage[] = [];
  readonly dependencies: Dependency[] = [];
  readonly gradients = new TracedGradients();
  /** Handles to captured storages that ops took. */
  readonly captured = new Set<Tensor>();
  /** Leaves found outside whose `requiresGrad` was read; ops may take only views of them. */
  readonly askedLeaves = new Set<Tensor>();
  readonly handleChanges = new HandleChanges();
  readonly written = new Set<number>();
  readonly live: (() => unknown)[] = [];
  device: Device | null = null;
  /** The most bytes that were allocated at a time since the first op. */
  peakBytes = 0;
  /** The first refusal. It stands even if the function catches it, as what follows would not happen eagerly. */
  refusal: CompileError | null = null;
  #bytesBefore = 0;
  readonly #numbers = new Map<Storage, number>();
  readonly #arguments: ReadonlyMap<Storage, number>;
  readonly #firstSerial = storagesMade() + 1;
  /** Ranges that the function opens; those around it belong to its caller. */
  readonly #ranges = new ReopenedRanges({ inside: currentOpenRange() });
  /** Storages filled by the host from numbers in the function's text. */
  readonly #constants = new Set<Storage>();
  readonly #originals: readonly Tensor[];
  /** The originals whose argument copies the function has written to. */
  readonly #writtenOriginals = new Set<Tensor>();
  readonly #namesMakers: boolean;
  readonly #owner: string;

  /** `argumentCopies` are the tensors that the function gets in place of its caller's, in their order. */
  constructor(argumentCopies: readonly Tensor[], options: TraceOptions = {}) {
    const { originals = [], namesMakers = false, owner = 'compile' } = options;
    this.#originals = originals;
    this.#namesMakers = namesMakers;
    this.#owner = owner;
    this.#arguments = new Map(argumentCopies.map(({ storage }, index) => [storage, index]));
  }

  before(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    this.#useDevice(op, inputs[0]!);
    this.#notePeak();
    const operands = {
      inputs: inputs.map((input) => this.operand(input)),
      outputs: outputs.map((output) => this.operand(output)),
    };
    this.#checkWrites(inputs, outputs);
    const given = operands.outputs.filter(({ storage }) => this.storages[storage]!.source.kind !== 'made');
    for (const { storage } of given) this.written.add(storage);
    const live = this.#addLive(perRunSourceOf(attributes));
    const place = this.#namesMakers || given.length > 0 || live !== null ? userPlace() : null;
    this.calls.push({
      op,
      ...operands,
      attributes,
      live,
      place,
      range: this.#ranges.below(null, currentOpenRange()),
    });
  }

  after(_: ComputeOp<never>, failed: boolean): void {
    // The function may catch the error and go on.
    const call = failed ? this.calls.pop() : null;
    if (call && call.live !== null) this.live.pop();
  }

  hostRead(source: Tensor): void {
    this.refuse(
      `the host reads a tensor ${formatShape(source.shape)} ${source.dtype}`,
      'Return the tensor and read it outside, or decide on the device, with where() say',
    );
  }

  hostWrite(target: Tensor, owner: string): void {
    if (ofNumbersAlone.has(owner)) {
      this.#constants.add(target.storage);
      return;
    }
    this.refuse(
      `a tensor ${formatShape(target.shape)} ${target.dtype} is filled with values of the host, which a replay could not ` +
        'know',
      'Make it outside, or pass it as an argument',
    );
  }

  deviceCopy(source: Tensor, target: Tensor): void {
    this.refuse(
      `a tensor ${formatShape(source.shape)} goes from ${source.device.label} to ${target.device.label}`,
      'Move it outside, and pass it as an argument',
    );
  }

  gradientRead(leaf: Tensor, grad: Tensor | null): void {
    this.gradients.touch(leaf, grad, this.#numbers);
  }

  gradientSet(leaf: Tensor, before: Tensor | null): void {
    if (before) this.gradients.taken.add(before.storage);
    this.gradients.touch(leaf, before, this.#numbers);
  }

  requirementRead(leaf: Tensor): void {
    if (leaf.storage.serial < this.#firstSerial) this.askedLeaves.add(leaf);
  }

  requirementSet(leaf: Tensor, before: boolean): void {
    if (leaf.storage.serial < this.#firstSerial) this.handleChanges.requirementSet(leaf, before);
  }

  historyWritten(target: Tensor): void {
    if (target.storage.serial < this.#firstSerial) this.handleChanges.historyWritten(target);
  }

  /** From here on the storage is the other one of the graph: what is gathered again is made again. */
  memoryMovedIn(storage: Storage, source: Storage): void {
    const number = this.#numbers.get(source);
    if (number === undefined)
      this.refuse('memory that was made outside is moved into a tensor', 'Bring it there outside');
    this.#numbers.set(storage, number);
  }

  memoryLetGo(storage: Storage): void {
    this.#numbers.delete(storage);
  }

  depends(read: () => unknown, value: unknown): void {
    // Read before each run, so kept once for what many layers read.
    if (this.dependencies.some((known) => known.read === read && Object.is(known.value, value))) return;
    this.dependencies.push({ read, value });
  }

  refuse(what: string, remedy: string): never {
    const last = this.calls.at(-1);
    const where = last ? ` (behind the op ${last.op.name})` : '';
    throw this.#refused(new CompileError(`${this.#owner}: ${what}${where}. ${remedy}.`));
  }

  /** `x` by the number of its storage, which gets one if it has none yet. */
  operand(x: Tensor): Operand {
    const { storage, shape, strides, offset, dtype, size, byteLength, isContiguous } = x;
    const number = this.#numberOf(x, storage);
    const { source } = this.storages[number]!;
    if (source.kind === 'captured') this.captured.add(x);
    // Here no op has been given it: ops check devices themselves.
    if (source.kind === 'argument' && this.device && x.device !== this.device) {
      this.refuse(
        `an argument ${formatShape(shape)} on ${x.device.label} is handed on by a function whose ops run on ${this.device.label}`,
        'Leave it out of the result and of the gradients',
      );
    }
    if (source.kind === 'gradient') this.gradients.use(x, source.leaf);
    return { storage: number, shape, strides, offset, dtype, size, byteLength, isContiguous };
  }

  /** The first call that wrote to a storage, and its output there; null if no op did. */
  writerOf(storage: Storage): { call: Call; output: Operand } | null {
    const number = this.#numbers.get(storage);
    for (const call of this.calls) {
      const output = call.outputs.find((operand) => operand.storage === number);
      if (output) return { call, output };
    }
    return null;
  }

  /** Gives back what the trace has taken of captured and constant storages. */
  release(): void {
    for (const { source } of this.storages) if ('storage' in source) source.storage.release();
  }

  /** The storages that the function made. */
  *madeStorages(): Generator<Storage> {
    for (const [storage, number] of this.#numbers)
      if (this.storages[number]!.source.kind === 'made') yield storage;
  }

  /** Called with an op's outputs allocated, before it runs; those of the first op count as the baseline. */
  #notePeak(): void {
    const { allocatedBytes } = this.device!;
    if (this.calls.length === 0) this.#bytesBefore = allocatedBytes;
    this.peakBytes = Math.max(this.peakBytes, allocatedBytes - this.#bytesBefore);
  }

  #addLive(next: (() => unknown) | null): number | null {
    return next && this.live.push(next) - 1;
  }

  /** Refuses writes, before they happen, that replays would not make, or that would not reach the caller's tensors. */
  #checkWrites(inputs: readonly Tensor[], outputs: readonly Tensor[]): void {
    for (const output of outputs) {
      if (this.#constants.has(output.storage))
        this.refuse('the numbers of arange() or linspace() are written to', 'Write to a copy() of them');
      const index = this.#arguments.get(output.storage);
      if (index === undefined) this.#refuseShared(this.#originals, output);
      else if (this.#originals.length > 0) this.#noteWritten(this.#originals[index]!);
    }
    for (const original of this.#writtenOriginals) this.#refuseShared(inputs, original);
  }

  /** Checks a caller's tensor whose copy is about to be written. */
  #noteWritten(original: Tensor): void {
    if (this.#writtenOriginals.has(original)) return;
    checkWrittenArgument(original);
    const others = this.#originals.filter((x) => x !== original);
    this.#refuseShared([...others, ...this.captured], original);
    if (this.gradients.leafOf(original.storage)) throw this.#refused(sharedMemoryError(original));
    this.#writtenOriginals.add(original);
  }

  #refuseShared(tensors: readonly Tensor[], written: Tensor): void {
    const sharing = tensors.find((x) => shareMemory(x, written));
    if (sharing) throw this.#refused(sharedMemoryError(sharing));
  }

  #refused(refusal: CompileError): CompileError {
    this.refusal ??= refusal;
    return refusal;
  }

  #numberOf(x: Tensor, storage: Storage): number {
    let number = this.#numbers.get(storage);
    if (number === undefined) {
      number = this.storages.length;
      this.#numbers.set(storage, number);
      this.storages.push({ byteLength: storage.byteLength, dtype: x.dtype, source: this.#sourceOf(storage) });
    }
    return number;
  }

  #sourceOf(storage: Storage): StorageSource {
    if (this.#constants.has(storage)) return { kind: 'constant', storage: storage.retain() };
    if (storage.serial >= this.#firstSerial) return { kind: 'made' };
    const index = this.#arguments.get(storage);
    if (index !== undefined) return { kind: 'argument', index };
    const leaf = this.gradients.leafOf(storage);
    // Retained, because nothing else may hold it as long as the graph.
    return leaf ? { kind: 'gradient', leaf } : { kind: 'captured', storage: storage.retain() };
  }

  #useDevice({ name }: ComputeOp<never>, { device }: Tensor): void {
    this.device ??= device;
    if (device === this.device) return;
    this.refuse(
      `${name} runs on ${device.label}, and what came before on ${this.device.label}`,
      'Compile a function for each device',
    );
  }
}
