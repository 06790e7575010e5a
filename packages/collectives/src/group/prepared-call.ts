import { RooflineError, type Tensor } from '@roofline/tensor-core';
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

/** A call of a group, as its method makes it. */
export interface Call {
  readonly kind: CollectiveKind;
  readonly details?: readonly string[];
  readonly isCompared?: boolean;
  readonly reduction?: Reduction;
  readonly root?: number;
  /** Read, written, or both where they are the same. */
  readonly input?: Tensor | null;
  readonly output?: Tensor | null;
  /** What all ranks must have alike, and how many elements of it are one rank's piece. */
  readonly like?: Tensor;
  readonly count?: number;
  readonly onCurrentStream?: boolean;
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
  #isHandedOut = false;
  #settle: ((error: Error | null, ran?: TimeSpan) => void) | null = null;

  constructor(
    {
      kind,
      details = [],
      isCompared = false,
      reduction = 'sum',
      root = 0,
      input,
      output,
      like,
      count,
      onCurrentStream = false,
    }: Call,
    members: Members,
    backend: Backend,
  ) {
    const isPairwise = kind === 'send' || kind === 'recv';
    const order = isPairwise && !backend.ordersPairs ? this : backend;
    const written = output ? outputOperand(kind, output, order) : null;
    const separate = input && input !== output ? inputBeside(written, kind, input, order) : null;
    const from = input === output ? written : separate;
    // The root's tensor is what a broadcast writes, to others.
    const to = kind === 'broadcast' ? (written ?? separate) : written;
    this.#members = members;
    this.#operands = [written, separate].filter((operand) => operand !== null);
    this.call = {
      kind,
      dtype: like?.dtype ?? 'float32',
      reduction,
      root,
      input: from?.address ?? 0,
      output: to?.address ?? 0,
      count: count ?? like?.size ?? 0,
      description: describeCall(isPairwise ? 'send and recv' : kind, details, like ?? null),
      isCompared,
      buffers: this.#operands.map(({ buffer }) => buffer),
      onCurrentStream,
    };
    this.work = new Work(
      kind,
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
  }

  /** The program has learnt how it failed. */
  noteHeard(): void {
    noteHeard(this.#members);
  }

  /** Settles its Work: as failed by `error`, else as done once the results are where they belong. */
  end(error: Error | null, ran?: TimeSpan): void {
    const result = error ?? this.arrive();
    this.#release();
    if (result && this.#isHandedOut) noteUnheard(this.#members, result);
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
