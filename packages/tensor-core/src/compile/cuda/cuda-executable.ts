import { observeReplay } from '../../op/observers.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { explainCalls, nodesBefore } from '../executable/explained-call.ts';
import type { PerRunAttributes } from '../executable/per-run-attributes.ts';
import type { Binding, ExecutableOptions, Executable, ExecutableFacts } from '../executable/executable.ts';
import type { Graph, StorageSource } from '../graph/graph.ts';
import { orderedCalls } from '../graph/ordered-effects.ts';
import type { EffectOrder } from '../../op/op.ts';
import { RunMemory } from '../executable/run-memory.ts';
import { replayOf } from '../executable/replay.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import type { Block, CudaGraph } from '@roofline/cuda/parts';
import type { CudaStream, MemoryPool } from '@roofline/cuda';
import { Arena } from './arena.ts';
import { letWait } from './branch-stream.ts';
import type { Branches } from './branches.ts';
import { type CapturedCalls, captureCall, captureCalls } from './capture-calls.ts';
import { CarriedCopies } from './carried-copies.ts';
import type { DeviceInternals } from '../../backends/cuda/device.ts';
import { ExternalPlaces } from './external-places.ts';
import { OutputLoans } from './output-loans.ts';
import { madeBytes } from './made-bytes.ts';
import { isFused } from '../passes/fused-ops.ts';
import { type ProductFacts, productFacts } from '../passes/product-facts.ts';
import { withoutRepeatedCalls } from '../passes/without-repeated-calls.ts';
import { madeAgain, negligibleBytes, scheduleGraph } from './schedule.ts';

/** A capture, and the addresses of given storages that it holds for. */
interface Captured extends CapturedCalls {
  /** The stream whose scratch it uses, and to which results and gradients belong. */
  readonly stream: CudaStream;
  readonly places: ExternalPlaces;
  /** The results and gradients. */
  readonly lent: OutputLoans;
}

/**
 * A graph as one CUDA graph: the kernels that its ops launch, in an arena that they share by liveness. Arguments are copied to
 * where the CUDA graph reads them; results and gradients are lent from where it writes them.
 */
export class CudaExecutable implements Executable {
  readonly tellsReplays = true;
  readonly #graph: Graph;
  readonly #parts: DeviceInternals;
  readonly #branches: Branches;
  #arena: Arena;
  readonly #pool: MemoryPool;
  /** Where the CUDA graph finds its arguments, and gradients that a run only reads and then replaces. */
  readonly #arguments = new Map<number, Storage>();
  readonly #argumentNumbers: readonly number[];
  /** The arguments, and all gradients that a run begins with: memory that belongs to others and differs in each run. */
  readonly #givenAnew: readonly number[];
  readonly #copies: CarriedCopies;
  readonly #autotunes: boolean;
  readonly #repeatedCalls: number;
  readonly #bytesInRegisters: number;
  readonly #madeAgain: Pick<ExecutableFacts, 'callsMadeAgain' | 'flopsMadeAgain'>;
  readonly #products: ProductFacts;
  /** The orders that its calls with effects keep. */
  readonly #orders: ReadonlyMap<EffectOrder, readonly string[]>;
  #captured: Captured | null = null;
  /** Take back what the orders would call before they end. */
  readonly #stopDrops: (() => void)[] = [];
  /** The arena, and workspaces that found no room in it: the memory that the CUDA graph works on. */
  #held: Block[] = [];
  #lastStream: CudaStream | null = null;
  #wroteNothing = true;

  constructor(graph: Graph, parts: DeviceInternals, options: Partial<ExecutableOptions> = {}) {
    this.#autotunes = options.autotune ?? false;
    const distinct = withoutRepeatedCalls(graph);
    this.#repeatedCalls = graph.calls.length - distinct.calls.length;
    const schedule = scheduleGraph(distinct, parts.device.facts, options);
    this.#graph = schedule.graph;
    this.#branches = schedule.branches;
    this.#arena = schedule.arena;
    this.#copies = new CarriedCopies(this.#graph, parts.driver);
    this.#bytesInRegisters = madeBytes(distinct) - madeBytes(schedule.plain) - this.#copies.castBytes;
    this.#products = productFacts(distinct, schedule.plain);
    this.#madeAgain = madeAgain(schedule);
    this.#parts = parts;
    const numbersWhere = (isMeant: (source: StorageSource, number: number) => boolean) =>
      graph.storages.flatMap(({ source }, number) => (isMeant(source, number) ? [number] : []));
    const replaced = new Set(graph.gradients.values());
    // A gradient that is replaced lies where the last run wrote it and this one writes its successor, so the CUDA graph reads
    // a copy. One that it also writes has no copy, because that could not be copied back.
    const isReplaced = (source: StorageSource, number: number) =>
      source.kind === 'gradient' && replaced.has(source.leaf) && !graph.written.has(number);
    this.#argumentNumbers = numbersWhere((source, n) => source.kind === 'argument' || isReplaced(source, n));
    this.#givenAnew = numbersWhere(({ kind }) => kind === 'argument' || kind === 'gradient');
    this.#pool = parts.device.createPool({ segmentSize: 'exact' });
    this.#orders = orderedCalls(graph.calls);
  }

  facts(): ExecutableFacts {
    const fused = new Map<string, number>();
    for (const { op } of this.#graph.calls)
      if (isFused(op)) fused.set(op.name, (fused.get(op.name) ?? 0) + 1);
    const table = explainCalls(this.#graph, [this.#graph.calls], this.#captured?.nodes, this.#branches);
    return {
      launches: 1,
      nodes: this.#captured?.graph.nodeCount() ?? null,
      nodesBefore: nodesBefore(table),
      table,
      fused,
      repeatedCalls: this.#repeatedCalls,
      bytesInRegisters: this.#bytesInRegisters,
      ...this.#copies.facts(),
      ...this.#products,
      ...this.#madeAgain,
      callsBeside: this.#branches.size,
      arenaBytes: this.#pool.reservedBytes + this.#copies.byteLength,
    };
  }

  get wroteNothing(): boolean {
    return this.#wroteNothing;
  }

  run(bindings: ReadonlyMap<number, Binding>, attributes: PerRunAttributes): Map<number, Storage> {
    this.#wroteNothing = true;
    for (const order of this.#orders.keys()) order.assertUsable(this.#graph.name);
    const { device } = this.#parts;
    device.makeCurrent();
    const { stream } = device;
    if (this.#lastStream) letWait(stream, this.#lastStream);
    this.#lastStream = stream;
    // Their holders may free them before this stream has used them.
    for (const number of this.#givenAnew) (bindings.get(number)!.storage.buffer as Block).usedBy(stream);
    this.#fillArguments(bindings);
    if (this.#captured?.places.areThoseOf(bindings) && !this.#captured.graph.isDisposed) {
      letWait(stream, this.#captured.stream);
      this.#captured.lent.takeBack();
    } else this.#capture(this.#withOwnArguments(bindings));
    // Asked for after everything that allocates: a run that finds no memory must not have advanced any counter.
    const live = attributes.all();
    // That may have replayed another specialization, and moved results of it that are captured here.
    if (!this.#captured!.places.areThoseOf(bindings)) this.#capture(this.#withOwnArguments(bindings));
    const captured = this.#captured!;
    captured.live.update(captured.graph, live);
    this.#copies.refresh(stream);
    observeReplay(
      () => replayOf(this.#graph, live, captured.nodes, this.#branches),
      () => {
        this.#launch(captured.graph, stream);
      },
    );
    letWait(captured.stream, stream);
    this.#returnArguments(bindings);
    return captured.lent.lend();
  }

  /** Queues the CUDA graph, after all that the orders of its calls have so far. */
  #launch(graph: CudaGraph, stream: CudaStream): void {
    const launch = () => {
      this.#wroteNothing = false;
      graph.launch(stream);
    };
    const inOrder = [...this.#orders].reduceRight<() => void>(
      (inner, [order, calls]) =>
        () =>
          order.launch(this.#graph.name, calls, inner),
      launch,
    );
    inOrder();
  }

  writesNoted(): void {
    this.#copies.noteWritten();
  }

  dispose(): void {
    this.#drop();
    this.#copies.dispose();
    for (const storage of this.#arguments.values()) storage.release();
    this.#arguments.clear();
    this.#pool.release();
  }

  #fillArguments(bindings: ReadonlyMap<number, Binding>): void {
    for (const number of this.#argumentNumbers) {
      const { byteLength } = this.#graph.storages[number]!;
      const { storage, byteOffset } = bindings.get(number)!;
      const own = this.#argumentStorage(number, byteLength);
      this.#parts.device.stream.copy(own.buffer.address, storage.buffer.address + byteOffset, byteLength);
    }
  }

  /** Where the CUDA graph finds what is given. */
  #withOwnArguments(bindings: ReadonlyMap<number, Binding>): Map<number, Binding> {
    const given = new Map(bindings);
    for (const [number, storage] of this.#arguments) given.set(number, { storage, byteOffset: 0 });
    return given;
  }

  /** Copies back what the CUDA graph wrote into its arguments. */
  #returnArguments(bindings: ReadonlyMap<number, Binding>): void {
    for (const [number, own] of this.#arguments) {
      if (!this.#graph.written.has(number)) continue;
      const { storage, byteOffset } = bindings.get(number)!;
      this.#parts.device.stream.copy(storage.buffer.address + byteOffset, own.buffer.address, own.byteLength);
    }
  }

  #argumentStorage(number: number, byteLength: number): Storage {
    let storage = this.#arguments.get(number);
    if (!storage) {
      const { device } = this.#parts;
      storage = device.withPool(this.#pool, () => new Storage(device, byteLength));
      this.#arguments.set(number, storage);
    }
    return storage;
  }

  /** Captures the calls, with the live attributes of the traced run: each replay sets its own before the launch. */
  #capture(given: ReadonlyMap<number, Binding>): void {
    // The traced run has left about as much memory in the cache as the arena takes, and replays need none of it.
    if (!this.#captured) this.#parts.device.emptyCache();
    if (!this.#autotunes) return this.#captureWithin(given);
    const { products } = this.#parts.lowering;
    // This capture only finds out which products there are.
    products.tune(() => {
      this.#captureOnce(given);
      this.#drop();
    });
    products.withTuned(() => this.#captureWithin(given));
  }

  /** Captures again where one arena with room for all workspaces is shorter than the arena plus those that did not fit. */
  #captureWithin(given: ReadonlyMap<number, Binding>): void {
    const bytesBeside = this.#captureOnce(given);
    if (bytesBeside <= negligibleBytes) return;
    const arena = new Arena(this.#graph, this.#branches, this.#captured!.workspaces);
    if (arena.byteLength >= this.#arena.byteLength + bytesBeside) return;
    this.#drop();
    this.#pool.emptyCache();
    this.#arena = arena;
    this.#captureOnce(given);
  }

  /** Returns how many bytes were allocated for workspaces outside the arena. */
  #captureOnce(given: ReadonlyMap<number, Binding>): number {
    this.#drop();
    const { device } = this.#parts;
    device.awaitFreedMemory();
    // Nor could it wait for what is under way on given memory.
    for (const { storage } of given.values()) void storage.buffer;
    const copies = this.#copies.bindings();
    const arena = device.withPool(this.#pool, () => new Storage(device, this.#arena.byteLength));
    const bytesBefore = this.#pool.reservedBytes;
    const inArena = this.#arena.bindings(arena);
    const memory = new RunMemory(this.#graph, new Map([...given, ...copies, ...inArena]));
    const { calls, kept } = this.#captureIn(arena, memory);
    const others = [...given.keys()].filter((number) => !this.#arguments.has(number));
    // What an order ends is in use by the CUDA graph, which goes first; a later run captures another, or learns that it cannot.
    for (const order of this.#orders.keys())
      this.#stopDrops.push(order.beforeEnd(() => calls.graph.dispose()));
    this.#captured = {
      ...calls,
      stream: device.stream,
      places: new ExternalPlaces(this.#graph, others, memory),
      lent: new OutputLoans(this.#graph, kept, this.#pool),
    };
    this.#held = this.#pool.holdFree(`arena of ${this.#graph.name || 'a compiled function'}`);
    return this.#pool.reservedBytes - bytesBefore;
  }

  /** Captures the casts of copies and the calls, and gives `arena` back to the pool. Also returns the addresses of what is kept. */
  #captureIn(
    arena: Storage,
    memory: RunMemory,
  ): { readonly calls: CapturedCalls; readonly kept: ReadonlyMap<number, number> } {
    const { device } = this.#parts;
    try {
      const ranges = new ReopenedRanges();
      this.#copies.capture(device.stream, (cast) =>
        captureCall(cast, memory, ranges, (...given) => device.run(...given)),
      );
      const place = { memory, arena: this.#arena, arenaAddress: arena.buffer.address, pool: this.#pool };
      const calls = captureCalls(this.#graph.calls, this.#branches, this.#parts, place);
      const kept = new Map([...this.#graph.kept].map((number) => [number, memory.addressOf(number)]));
      return { calls, kept };
    } finally {
      arena.release();
    }
  }

  #drop(): void {
    if (!this.#captured) return;
    for (const stop of this.#stopDrops.splice(0)) stop();
    // Its last launch may still be running.
    this.#parts.device.synchronize();
    this.#captured.lent.dispose();
    this.#captured.graph.dispose();
    for (const block of this.#held) this.#parts.device.freeBlock(block);
    this.#held = [];
    // Another stream could not use what this one leaves.
    if (this.#captured.stream !== this.#parts.device.stream) this.#pool.emptyCache();
    this.#captured = null;
  }
}
