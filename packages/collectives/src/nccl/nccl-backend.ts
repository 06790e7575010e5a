import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import type { CudaEvent, CudaStream } from '@roofline/cuda';
import type {
  Backend,
  BackendCall,
  CapturedPrograms,
  Failure,
  LaunchedProgram,
  PendingCall,
  RunningCall,
} from '../group/backend.ts';
import type { Communicator } from './communicator.ts';
import { mostPending } from './communicator-state.ts';
import { borrowStream, giveBackStream } from './communication-streams.ts';
import { ncclCallsOf } from './nccl-calls.ts';
import { ncclSuccess } from './nccl-codes.ts';
import { NvlinkMemory } from './nvlink-memory.ts';
import type { Alarms } from './watchdog/alarms.ts';
import type { Watchdog } from './watchdog/watchdog.ts';

export interface NcclBackendParts {
  readonly device: CudaDevice;
  readonly communicator: Communicator;
  readonly watchdog: Watchdog;
  readonly alarms: Alarms;
  readonly rank: number;
  readonly size: number;
  /** Whether calls are compared with those of the other ranks. */
  readonly checkCalls: boolean;
}

/** Calls on the stream, and the event after them. */
interface Flight {
  readonly calls: readonly Pick<PendingCall, 'onSettled'>[];
  readonly stream: CudaStream;
  readonly event: CudaEvent;
  readonly number: number;
  /** How many calls of the group have been sent to be compared by now, where calls wait for that. */
  readonly sentChecks: number;
  /** Whether a program goes on with its results. */
  isHandedOut: boolean;
  isSettled: boolean;
}

const pollMs = 1;
/** How often a program with CUDA graphs, and no call under way, looks whether the watchdog has ended the communicator. */
const lookoutMs = 50;
const scratchBytes = 4;

/** Groups that are open: a communicator with calls under way would hold up the end of the process. */
const open = new Set<NcclBackend>();
let abortsAtExit = false;

/** NCCL, on a stream of the group's own or on that of the ops around a call. */
export class NcclBackend implements Backend, CapturedPrograms {
  readonly name = 'nccl';
  readonly ordersPairs = true;
  readonly deviceType = 'cuda';
  readonly device: CudaDevice;
  readonly programs = this;
  readonly #parts: NcclBackendParts;
  readonly #stream: CudaStream;
  readonly #scratch;
  #symmetricMemory: NvlinkMemory | null = null;
  #flights: Flight[] = [];
  /** Each frees a CUDA graph with calls in it. */
  readonly #drops = new Set<() => void>();
  /** While there are any: the watchdog that ends the communicator waits for them to go, also where nothing is under way. */
  #lookout: NodeJS.Timeout | null = null;
  #failure: Failure | null = null;
  #sentChecks = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(parts: NcclBackendParts) {
    this.device = parts.device;
    this.#parts = parts;
    this.#stream = borrowStream(parts.device);
    this.#scratch = parts.device.allocateBlock(scratchBytes);
    parts.device.recordStream(this.#scratch, this.#stream);
    open.add(this);
    if (!abortsAtExit) process.on('exit', abortAll);
    abortsAtExit = true;
  }

  /** Null for one rank, which has nothing to reduce. */
  get symmetricMemory(): NvlinkMemory | null {
    const { device, rank, size, communicator } = this.#parts;
    if (size === 1) return null;
    this.#symmetricMemory ??= new NvlinkMemory({ device, rank, size, state: communicator.state });
    return this.#symmetricMemory;
  }

  /** NCCL does not say how many it takes. */
  get multiprocessors(): number {
    return this.#symmetricMemory?.multiprocessors ?? 0;
  }

  start(calls: readonly PendingCall[]): RunningCall {
    this.#poll();
    const onCurrentStream = calls.every(({ call }) => call.onCurrentStream);
    const stream = onCurrentStream ? this.device.stream : this.#stream;
    const failure = this.#findFailure() ?? this.#enqueue(calls, stream);
    if (failure) {
      this.#fail(failure, calls);
      return { wait: () => {} };
    }
    const flight = this.#takeOff(calls, stream, onCurrentStream);
    const blocks = calls.some(({ call }) => call.kind === 'barrier');
    return { wait: () => this.#wait(flight, blocks) };
  }

  /** Watches what has just been queued on `stream`. */
  #takeOff(calls: Flight['calls'], stream: CudaStream, isHandedOut: boolean): Flight {
    const event = stream.recordEvent({ timing: false });
    const { state } = this.#parts.communicator;
    state.begin(event.handle);
    const flight = {
      ...{ calls, stream, event, number: state.started },
      ...{ sentChecks: this.#sentChecks, isHandedOut, isSettled: false },
    };
    this.#flights.push(flight);
    this.#pollLater();
    return flight;
  }

  /**
   * Each launch of the graph is watched as a whole: nobody can ask an event that is captured. Where the call fails, the communicator
   * ends once the capture has: its end waits for all graphs with its calls, this one too.
   */
  capture(calls: readonly BackendCall[]): Failure | null {
    const { communicator, alarms, rank } = this.#parts;
    if (this.#failure) return this.#failure;
    const why = communicator.enqueue(this.#ncclCallsOf(calls, this.device.stream), { isCaptured: true });
    if (why === null) return null;
    const failure: Failure = { status: 'failed', losses: new Map(), message: why };
    // The watchdog that has ended it knows more.
    if (communicator.state.hasFailed) return failure;
    this.#failure = failure;
    void alarms
      .raise(`rank ${rank} of the group: ${why}`)
      .catch(() => {})
      .then(() => this.#endCommunicator());
    return failure;
  }

  failure(): Failure | null {
    this.#poll();
    return this.#findFailure();
  }

  launch(program: LaunchedProgram, launch: () => void): Failure | null {
    const failure = this.failure();
    if (failure) return failure;
    const { checkCalls, communicator } = this.#parts;
    const { stream } = this.device;
    this.#makeRoom();
    this.device.makeCurrent();
    this.#queueBehind(stream);
    if (checkCalls) this.#check(program.description, null);
    communicator.state.noteAttempt();
    launch();
    this.#takeOff([program], stream, true);
    return null;
  }

  beforeEnd(drop: () => void): () => void {
    this.#drops.add(drop);
    this.#lookout ??= setInterval(() => this.failure(), lookoutMs).unref();
    return () => {
      this.#drops.delete(drop);
      this.#stopLookout();
    };
  }

  #stopLookout(): void {
    if (!this.#lookout || this.#drops.size > 0) return;
    clearInterval(this.#lookout);
    this.#lookout = null;
  }

  /** NCCL's end of a communicator waits for all graphs with its calls to go. */
  #endCommunicator(): void {
    for (const drop of [...this.#drops]) drop();
    this.#drops.clear();
    this.#stopLookout();
    this.#parts.communicator.abort();
  }

  #makeRoom(): void {
    if (this.#flights.length < mostPending) return;
    this.#flights[0]!.event.synchronize();
    this.#poll({ waitsForChecks: false });
  }

  /** Has a call that later ones wait for compared with those of the other ranks. */
  #check(description: string, pair: { from: number; to: number } | null): void {
    this.#parts.watchdog.check({ description, pair, isAwaited: true });
    this.#sentChecks++;
  }

  close(): void {
    if (!open.delete(this)) return;
    // What a program goes on with must come about; the watchdog frees this thread if it does not.
    this.#flights.findLast(({ isHandedOut }) => isHandedOut)?.event.synchronize();
    this.#poll({ waitsForChecks: false });
    const failure: Failure = { status: 'failed', losses: new Map(), message: 'the group was disposed' };
    this.#endCommunicator();
    this.#parts.watchdog.close();
    this.#fail(this.#failure ?? failure, []);
    this.device.freeBlock(this.#scratch);
    giveBackStream(this.device, this.#stream);
    this.#symmetricMemory?.close();
  }

  /** Ends what is under way, for a process that ends. */
  abortFlights(): void {
    if (this.#flights.length > 0 || this.#parts.communicator.state.hasFailed) this.#endCommunicator();
  }

  /** Puts the calls on `stream`, after what the current one has so far. Gives why that failed, or null. */
  #enqueue(calls: readonly PendingCall[], stream: CudaStream): Failure | null {
    const { device, rank, checkCalls, watchdog } = this.#parts;
    this.#makeRoom();
    device.makeCurrent();
    this.#queueBehind(stream);
    for (const { call } of calls) {
      for (const buffer of call.buffers) device.recordStream(buffer, stream);
      if (checkCalls) this.#check(call.description, pairOf(call, rank));
      else if (call.isCompared)
        watchdog.check({ description: call.description, pair: pairOf(call, rank), isAwaited: false });
    }
    const { communicator, alarms } = this.#parts;
    const ncclCalls = this.#ncclCallsOf(
      calls.map(({ call }) => call),
      stream,
    );
    const why = communicator.enqueue(ncclCalls, { isCaptured: false });
    if (why === null) return null;
    // The watchdog has freed this thread: it knows more than the library then says.
    const wasEnded = communicator.state.hasFailed;
    // The other ranks would wait for this one; without a store they find out when their time is over.
    if (!wasEnded) void alarms.raise(`rank ${rank} of the group: ${why}`).catch(() => {});
    this.#endCommunicator();
    if (wasEnded) return this.#findFailure();
    return { status: 'failed', losses: new Map(), message: why };
  }

  #ncclCallsOf(calls: readonly BackendCall[], stream: CudaStream): ReturnType<typeof ncclCallsOf> {
    const { communicator, rank, size } = this.#parts;
    const place = {
      rank,
      size,
      communicator: communicator.handle,
      stream: stream.handle,
      scratch: this.#scratch.address,
    };
    const launch = this.#symmetricMemory?.launchOf(calls, stream);
    if (!launch) return calls.flatMap((call) => ncclCallsOf(call, place));
    return [
      () => {
        launch();
        return ncclSuccess;
      },
    ];
  }

  /** Has `stream` wait for the current one, and for the call before, which may be on another: all ranks run them in order. */
  #queueBehind(stream: CudaStream): void {
    const before = this.#flights.at(-1);
    if (before && before.stream !== stream) stream.waitFor(before.event);
    if (stream === this.device.stream) return;
    using inputsReady = this.device.recordEvent({ timing: false });
    stream.waitFor(inputsReady);
  }

  #wait(flight: Flight, blocks: boolean): void {
    if (blocks) flight.event.synchronize();
    // What has not failed is waited for on the stream, whether it has run or not.
    if (blocks || this.#parts.communicator.state.hasFailed) this.#poll();
    if (flight.isSettled) return;
    flight.isHandedOut = true;
    if (flight.stream !== this.device.stream) this.device.stream.waitFor(flight.event);
  }

  /** Settles what has run, in order, or all of it where the communicator is gone. */
  #poll({ waitsForChecks = true } = {}): void {
    const { state } = this.#parts.communicator;
    while (this.#flights.length > 0) {
      const [flight] = this.#flights as [Flight];
      const { calls, event, number, sentChecks } = flight;
      const hasCompleted = event.hasCompleted() && (!waitsForChecks || state.checked >= sentChecks);
      const failure = this.#findFailure();
      if (failure) return this.#fail(failure, []);
      if (!hasCompleted) return;
      this.#flights.shift();
      flight.isSettled = true;
      state.completeUpTo(number);
      event.dispose();
      for (const call of calls) call.onSettled({ status: 'done' });
    }
  }

  /** What the watchdog has ended the communicator for, or an earlier call of this thread. */
  #findFailure(): Failure | null {
    const { communicator, watchdog } = this.#parts;
    if (this.#failure || !communicator.state.hasFailed) return this.#failure;
    // Where the watchdog is at it, waits for its end.
    this.#endCommunicator();
    const reported = watchdog.failure();
    const message = reported?.message ?? 'the communicator has been aborted';
    // The watchdog tells it once.
    this.#failure = { status: 'failed', losses: new Map(reported?.losses ?? []), message };
    return this.#failure;
  }

  #fail(failure: Failure, further: readonly PendingCall[]): void {
    this.#failure ??= failure;
    const flights = this.#flights.splice(0);
    for (const flight of flights) flight.isSettled = true;
    for (const call of [...flights.flatMap(({ calls }) => calls), ...further]) call.onSettled(failure);
  }

  #pollLater(): void {
    if (this.#timer || this.#flights.length === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#poll();
      this.#pollLater();
    }, pollMs);
  }
}

function pairOf({ kind, root }: BackendCall, rank: number): { from: number; to: number } | null {
  if (kind === 'send') return { from: rank, to: root };
  return kind === 'recv' ? { from: root, to: rank } : null;
}

function abortAll(): void {
  for (const backend of open) backend.abortFlights();
}
