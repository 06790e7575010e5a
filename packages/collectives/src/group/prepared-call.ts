import { RooflineError, type Tensor, type TensorSpec, sizeOf } from '@roofline/tensor-core';
import type {
  Backend,
  BackendCall,
  CollectiveKind,
  Outcome,
  PendingCall,
  Reduction,
  RunningCall,
  TimeSpan,
} from './backend.ts';
import { type Members, describeCall, errorOf } from './describe-call.ts';
import { type Operand, inputOperand, outputOperand } from './operands.ts';
import { noteHeard, noteUnheard } from './unheard-failures.ts';
import { Work } from './work.ts';

/** A call of a group without its memory. */
export interface CallTerms {
  readonly kind: CollectiveKind;
  readonly details?: readonly string[];
  readonly isCompared?: boolean;
  readonly reduction?: Reduction;
  readonly root?: number;
  /** What all ranks must have alike, and how many elements of it are one rank's piece. */
  readonly like?: TensorSpec | null;
  readonly count?: number;
  readonly onCurrentStream?: boolean;
}

/** A call of a group, as its method makes it. */
export interface Call extends CallTerms {
  readonly like?: Tensor | null;
  /** Read, written, or both where they are the same. */
  readonly input?: Tensor | null;
  readonly output?: Tensor | null;
}

/** A call whose memory is held, on its way to a backend; its Work is there before it begins. */
export class PreparedCall implements PendingCall {
  readonly call: BackendCall;
  readonly work: Work;
  /** Called once it has ended, with why it failed or null. */
  onEnded: (error: Error | null) => void = () => {};
  readonly #members: Members;
  readonly #operands: Operand[];
  #running: RunningCall | null = null;
  #onBegun: (() => void) | null = null;
  #isHandedOut = false;
  #hasEnded = false;
  #error: Error | null = null;
  #settle: ((error: Error | null, ran?: TimeSpan) => void) | null = null;

  /** Takes over the operands, which it releases. */
  constructor(call: BackendCall, operands: readonly Operand[], members: Members) {
    this.call = call;
    this.#members = members;
    this.#operands = [...operands];
    this.work = new Work(
      call.kind,
      (settle) => {
        this.#settle = settle;
        return { wait: () => this.#wait() };
      },
      () => this.noteHeard(),
    );
  }

  /** For the backend: how it ended. */
  onSettled(outcome: Outcome): void {
    const { kind, description, root } = this.call;
    const peer = kind === 'send' || kind === 'recv' ? root : null;
    const error = errorOf(kind, outcome, this.#members, description, peer);
    // The group goes on: no later call would report it.
    if (error && outcome.status === 'mismatch') noteUnheard(this.#members, error);
    this.end(error, outcome.status === 'done' ? outcome.ran : undefined);
  }

  /** The backend has begun it: its Work can be waited for. */
  begun(running: RunningCall): void {
    this.#running = running;
    this.#noteBegun();
  }

  /** False while coalesce() collects calls, and nobody can wait for this one. */
  get hasBegun(): boolean {
    return this.#running !== null || this.#hasEnded;
  }

  /** Calls `then` once the call has begun, or has ended without that; at once where it has. */
  onceBegun(then: () => void): void {
    if (this.hasBegun) then();
    else this.#onBegun = then;
  }

  #noteBegun(): void {
    this.#onBegun?.();
    this.#onBegun = null;
  }

  /** The program has learnt how it failed. */
  noteHeard(): void {
    noteHeard(this.#members);
  }

  /** What its Work's `wait` does, also while a function is being compiled. */
  awaitResult(): void {
    if (!this.#hasEnded) this.#wait();
    if (!this.#error) return;
    this.noteHeard();
    throw this.#error;
  }

  /** Settles its Work: as failed by `error`, else as done once the results are where they belong. */
  end(error: Error | null, ran?: TimeSpan): void {
    const result = error ?? this.arrive();
    this.#release();
    this.#noteBegun();
    if (result && this.#isHandedOut) noteUnheard(this.#members, result);
    this.#error = result;
    this.#hasEnded = true;
    this.#settle!(result, ran);
    this.onEnded(result);
  }

  /** Brings the results where they belong, once, and lets go of the memory; gives what went wrong with that. */
  arrive(): Error | null {
    try {
      for (const operand of this.#operands) operand.finish();
      return null;
    } catch (error) {
      return error as Error;
    } finally {
      this.#release();
    }
  }

  #wait(): void {
    if (!this.#running)
      throw new RooflineError(
        'ARGUMENT',
        `${this.call.kind}: begins when coalesce() returns; wait() after that.`,
      );
    this.#running.wait();
    // On a GPU the result is there for all that is queued from now on, though the call may not have run.
    const error = this.arrive();
    if (error) throw error;
    this.#isHandedOut = true;
  }

  #release(): void {
    for (const operand of this.#operands.splice(0)) operand.release();
  }
}

/** A call on tensors, whose memory it holds: strided ones travel as copies. Throws what holding them throws. */
export function preparedOnTensors(call: Call, members: Members, backend: Backend): PreparedCall {
  const { kind, input, output } = call;
  const isPairwise = kind === 'send' || kind === 'recv';
  const order = isPairwise && !backend.ordersPairs ? {} : backend;
  const written = output ? outputOperand(kind, output, order) : null;
  const separate = input && input !== output ? inputBeside(written, kind, input, order) : null;
  const from = input === output ? written : separate;
  // The root's tensor is what a broadcast writes, to others.
  const to = kind === 'broadcast' ? (written ?? separate) : written;
  const operands = [written, separate].filter((operand) => operand !== null);
  return new PreparedCall(
    {
      ...termsOf(call),
      input: from?.address ?? 0,
      output: to?.address ?? 0,
      buffers: operands.map(({ buffer }) => buffer),
    },
    operands,
    members,
  );
}

/** A call without its memory. */
export function termsOf({
  kind,
  details = [],
  isCompared = false,
  reduction = 'sum',
  root = 0,
  like = null,
  count = like ? sizeOf(like.shape) : 0,
  onCurrentStream = false,
}: CallTerms): Omit<BackendCall, 'input' | 'output' | 'buffers'> {
  const isPairwise = kind === 'send' || kind === 'recv';
  return {
    ...{ kind, reduction, root, count, isCompared, onCurrentStream },
    dtype: like?.dtype ?? 'float32',
    description: describeCall(isPairwise ? 'send and recv' : kind, details, like),
  };
}

/** What a call reads besides what it writes, which is released where that fails. */
function inputBeside(written: Operand | null, op: string, x: Tensor, order: object): Operand {
  try {
    return inputOperand(op, x, order);
  } catch (error) {
    written?.release();
    throw error;
  }
}

/** Begins calls as one; lets go of their memory where that fails. */
export function startTogether(calls: readonly PreparedCall[], backend: Backend): RunningCall {
  try {
    const running = backend.start(calls);
    for (const call of calls) call.begun(running);
    return running;
  } catch (error) {
    for (const call of calls) call.end(error as Error);
    throw error;
  }
}
