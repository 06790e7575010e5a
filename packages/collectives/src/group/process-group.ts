import {
  type Device,
  DisposedError,
  RooflineError,
  ShapeError,
  type Tensor,
  checkOptions,
  formatShape,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import { refuseAsync, refusePromise } from '@roofline/cuda/host';
import type { Backend } from './backend.ts';
import { checkPeer, checkRank, checkSubGroupRanks } from './check-call.ts';
import { type HeldCall, checkRead, collectAsOp, collectCalls, heldCall } from './coalesce.ts';
import { CollectiveChecks, type ReduceOptions, checkAlike, reductionOf } from './collective-checks.ts';
import type { Members } from './describe-call.ts';
import { allGatherObject } from './gather-objects.ts';
import { checkOperand, checkOverlap, checkTarget, checkTravels } from './operands.ts';
import { type MemoryCall, captureOnMemory, noteUnderWay, preparedOnMemory } from './call-on-memory.ts';
import { setInternals } from './group-internals.ts';
import { GroupPrograms } from './group-programs.ts';
import { type Call, type PreparedCall, preparedOnTensors, startTogether } from './prepared-call.ts';
import { applyInPlace, replayedKinds } from './in-place-ops.ts';
import { Work } from './work.ts';

/** How a group makes another one of some of its ranks. */
export type Regroup = (members: Members) => Promise<ProcessGroup>;

/**
 * Ranks that work together. Each call returns a Work immediately; calls on one group run one after the other, in their
 * order, which must be the same on all its ranks. Ranks that call something else, or with another shape or dtype, all
 * get a CollectiveError, and the group goes on; one that loses a rank does not.
 */
export class ProcessGroup {
  readonly rank: number;
  readonly size: number;
  /** The world's ranks, in the order of this group's. */
  readonly ranks: readonly number[];
  readonly #members: Members;
  readonly #backend: Backend;
  readonly #checks: CollectiveChecks;
  readonly #regroup: Regroup;
  readonly #onDispose: () => void;
  /** The calls of `coalesce` so far, while it collects them. */
  #together: PreparedCall[] | null = null;
  /** The same while a function is compiled. */
  #togetherAsOp: HeldCall[] | null = null;
  #onCurrentStream = false;
  #isDisposed = false;

  /** Made by `initProcessGroup` and `subGroup`. */
  constructor(members: Members, backend: Backend, regroup: Regroup, onDispose: () => void) {
    this.rank = members.rank;
    this.size = members.ranks.length;
    this.ranks = members.ranks;
    this.#members = members;
    this.#backend = backend;
    this.#checks = new CollectiveChecks(members, backend);
    this.#regroup = regroup;
    this.#onDispose = onDispose;
    const programs = new GroupPrograms(
      members,
      backend,
      (call) => this.#start(call),
      (op) => this.#assertNotDisposed(op),
    );
    setInternals(this, {
      programs,
      get symmetricMemory() {
        return backend.symmetricMemory;
      },
      checkInput: (op, x) => checkTravels(op, x, backend),
      startOnMemory: (call) => this.#startOnMemory(call),
    });
  }

  get backend(): string {
    return this.#backend.name;
  }

  /** The GPU whose tensors this group takes; null for those of the CPU. */
  get device(): Device | null {
    return this.#backend.device;
  }

  /** The reduction of all ranks' `x`, on all ranks: into `x`, or into `output` of the same shape. */
  allReduce(x: Tensor, options: ReduceOptions = {}): Work {
    const { reduction, output, context } = this.#checks.reduceOperands('allReduce', x, options);
    return this.#start({
      kind: 'allReduce',
      reduction,
      details: [reduction, ...context],
      isCompared: context.length > 0,
      input: x,
      output,
      like: x,
    });
  }

  /** The same, but only the root gets the result; the others' tensors stay. */
  reduce(x: Tensor, root: number, options: ReduceOptions = {}): Work {
    checkRank('reduce', 'the root', root, this.size);
    const { reduction, output, context } = this.#checks.reduceOperands('reduce', x, options);
    const details = [reduction, `root ${root}`, ...context];
    const isRoot = this.rank === root;
    return this.#start({
      kind: 'reduce',
      reduction,
      details,
      isCompared: context.length > 0,
      root,
      input: x,
      like: x,
      ...(isRoot && { output }),
    });
  }

  /** The root's `x` into everyone's. */
  broadcast(x: Tensor, root: number): Work {
    checkRank('broadcast', 'the root', root, this.size);
    const isRoot = this.rank === root;
    if (isRoot) checkOperand('broadcast', x, this.#backend);
    else checkTarget('broadcast', x, this.#backend);
    // Gloo takes the root's tensor as its output too, and leaves it as it is.
    return this.#start({
      kind: 'broadcast',
      details: [`root ${root}`],
      root,
      like: x,
      ...(isRoot ? { input: x } : { output: x }),
    });
  }

  /**
   * All ranks' `input`, one after the other, on all ranks. `output` has the input's shape after a dimension of the
   * group's size, or its first dimension times that size. In place: `input` is this rank's piece of `output`.
   */
  allGather(output: Tensor, input: Tensor): Work {
    this.#checks.checkPieces('allGather', output, input, 'output');
    checkTarget('allGather', output, this.#backend);
    checkOverlap('allGather', output, input, this.rank * input.byteLength);
    return this.#start({ kind: 'allGather', input, output, like: input });
  }

  /**
   * The reduction of all ranks' `input`, of which each gets its piece; `input` has the shape of `allGather`'s output.
   * In place: `output` is this rank's piece of `input`.
   */
  reduceScatter(output: Tensor, input: Tensor, options: Pick<ReduceOptions, 'op'> = {}): Work {
    checkOptions('reduceScatter', options, ['op']);
    this.#checks.checkPieces('reduceScatter', input, output, 'input');
    checkTarget('reduceScatter', output, this.#backend);
    checkOverlap('reduceScatter', output, input, this.rank * output.byteLength);
    const reduction = reductionOf('reduceScatter', options.op, input);
    return this.#start({
      kind: 'reduceScatter',
      reduction,
      details: [reduction],
      input,
      output,
      like: output,
    });
  }

  /** Piece i of `input`, along its first dimension, to rank i; what comes from rank i is piece i of `output`. */
  allToAll(output: Tensor, input: Tensor): Work {
    checkOperand('allToAll', input, this.#backend);
    checkTarget('allToAll', output, this.#backend);
    checkAlike('allToAll', output, input);
    if (input.rank === 0 || input.shape[0]! % this.size !== 0)
      throw new ShapeError(
        `allToAll: the first dimension of ${formatShape(input.shape)} must be a multiple of the group's size ` +
          `${this.size}: each rank gets a piece.`,
      );
    checkOverlap('allToAll', output, input, null);
    return this.#start({ kind: 'allToAll', input, output, like: input, count: input.size / this.size });
  }

  /** All ranks' `input`, one after the other, on the root; the others give no output. Shapes as for `allGather`. */
  gather(output: Tensor | null, input: Tensor, root: number): Work {
    checkRank('gather', 'the root', root, this.size);
    checkOperand('gather', input, this.#backend);
    this.#checks.checkRootsTensor('gather', 'output', output, root);
    if (output !== null) {
      this.#checks.checkPieces('gather', output, input, 'output');
      checkTarget('gather', output, this.#backend);
      checkOverlap('gather', output, input, this.rank * input.byteLength);
    }
    const details = [`root ${root}`];
    return this.#start({ kind: 'gather', details, root, input, output, like: input });
  }

  /** Piece i of the root's `input` into the `output` of rank i; the others give no input. Shapes as for `allGather`. */
  scatter(output: Tensor, input: Tensor | null, root: number): Work {
    checkRank('scatter', 'the root', root, this.size);
    checkTarget('scatter', output, this.#backend);
    this.#checks.checkRootsTensor('scatter', 'input', input, root);
    if (input !== null) {
      this.#checks.checkPieces('scatter', input, output, 'input');
      checkOverlap('scatter', output, input, this.rank * output.byteLength);
    }
    const details = [`root ${root}`];
    return this.#start({ kind: 'scatter', details, root, input, output, like: output });
  }

  /**
   * Sends to one rank, which must `recv` the same shape and dtype. On Gloo it does not wait for this group's other
   * calls; NCCL runs it in their order, so ranks that send to each other `coalesce` that with what they receive.
   */
  send(x: Tensor, to: number): Work {
    checkPeer('send', to, this);
    checkOperand('send', x, this.#backend);
    return this.#start({ kind: 'send', root: to, input: x, like: x });
  }

  /** What `from` sends, into `x`. What two ranks send each other arrives in its order. */
  recv(x: Tensor, from: number): Work {
    checkPeer('recv', from, this);
    checkTarget('recv', x, this.#backend);
    return this.#start({ kind: 'recv', root: from, output: x, like: x });
  }

  /** Done when all ranks have called it. */
  barrier(): Work {
    return this.#start({ kind: 'barrier' });
  }

  /**
   * Begins all calls that `calls` makes on this group together, once it returns, and gives one Work for them: NCCL runs
   * them as one (ncclGroupStart, ncclGroupEnd), so that sends and receives of both directions need no order among them.
   * All ranks must coalesce the same calls. Where `calls` throws, nothing is sent. Throws a RooflineError for an async
   * function, inside another `coalesce`, and where a Work is waited for inside. A compiled function repeats calls in place.
   */
  coalesce(calls: () => void): Work {
    if (this.#together || this.#togetherAsOp)
      throw new RooflineError('ARGUMENT', 'coalesce: stands inside another one; join them.');
    try {
      if (currentTrace()) return collectAsOp(this, (this.#togetherAsOp = []), calls);
      return collectCalls((this.#together = []), calls, this.#backend);
    } finally {
      this.#together = this.#togetherAsOp = null;
    }
  }

  /**
   * Runs `calls`, whose calls on this group are queued in order with the ops of the current stream instead of alongside
   * them, as PyTorch's without `async_op` are, and gives what it returns. They finish sooner, because no stream waits
   * for another, which takes most of the time of a small call; nothing overlaps with them, and their time limit also
   * counts what is queued before them. `coalesce` must be inside or around all of them. On the CPU nothing changes.
   * Throws a RooflineError for an async function.
   */
  onCurrentStream<T>(calls: () => T): T {
    refuseAsync('onCurrentStream', calls);
    const outside = this.#onCurrentStream;
    this.#onCurrentStream = true;
    try {
      return refusePromise('onCurrentStream', calls());
    } finally {
      this.#onCurrentStream = outside;
    }
  }

  /**
   * All ranks' values, in the order of ranks: what `structuredClone` takes. Like a collective, all ranks must call it
   * in the same place.
   */
  allGatherObject<T>(value: T): Promise<T[]> {
    return allGatherObject(this, value);
  }

  /**
   * A group of some of this one's ranks, given by their numbers here; only those call it, each with the same list, and
   * any two ranks make the groups that they share in the same order. Works after a rank was lost too, as long as the
   * store's host lives. Throws a CollectiveError that names who asks for other ranks, once that is seen, or who did not
   * come in time; this group goes on.
   */
  async subGroup(members: readonly number[]): Promise<ProcessGroup> {
    checkSubGroupRanks('subGroup', members, this.rank, this.size);
    return await this.#regroup({
      ranks: members.map((member) => this.ranks[member]!),
      rank: members.indexOf(this.rank),
    });
  }

  /**
   * Leaves the group: ends the connections, and with them what is under way; later calls throw a DisposedError. The
   * store stays until the first group has left.
   */
  dispose(): void {
    this.#isDisposed = true;
    this.#backend.close();
    this.#onDispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Begins the calls of an op. */
  #startOnMemory(calls: readonly MemoryCall[]): void {
    const [first] = calls as [MemoryCall];
    this.#assertNotDisposed(first.terms.kind);
    if (first.isCaptured) return captureOnMemory(calls, this.#members, this.#backend);
    const onCurrentStream = this.#onCurrentStream;
    for (const { terms, input, isInPlace } of calls)
      if (input && !isInPlace) checkRead(terms.kind, input, this.#togetherAsOp ?? []);
    const prepared = calls.map((call) =>
      preparedOnMemory({ ...call, terms: { ...call.terms, onCurrentStream } }, this.#members, this.#backend),
    );
    this.#begin(prepared);
    for (const [i, call] of calls.entries()) noteUnderWay(prepared[i]!, call);
  }

  #start(call: Call): Work {
    this.#assertNotDisposed(call.kind);
    const trace = currentTrace();
    if (trace && replayedKinds.includes(call.kind) && !this.#together) {
      if (this.#togetherAsOp) this.#togetherAsOp.push(heldCall(call, this.#backend));
      else applyInPlace(this, [call]);
      return Work.ofOp(call.kind);
    }
    // Also where nothing is held, as for copies.
    trace?.refuse(
      `${call.kind} works on memory outside of the ops, which replays would not repeat`,
      'Call it outside, on what the compiled function returns',
    );
    const terms = { ...call, onCurrentStream: this.#onCurrentStream };
    const prepared = preparedOnTensors(terms, this.#members, this.#backend);
    this.#begin([prepared]);
    return prepared.work;
  }

  #begin(prepared: readonly PreparedCall[]): void {
    if (this.#together) this.#together.push(...prepared);
    else startTogether(prepared, this.#backend);
  }

  #assertNotDisposed(op: string): void {
    if (!this.#isDisposed) return;
    throw new DisposedError(
      `${op}: the group was used after it had been disposed; dispose() after its last call.`,
    );
  }
}
