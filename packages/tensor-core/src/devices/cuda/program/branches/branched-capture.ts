import type { CudaEvent } from '../../driver/event.ts';
import type { CudaStream } from '../../driver/stream.ts';
import type { Branches } from './branches.ts';

/**
 * Puts calls on the streams of their branches, under capture, and lets these wait for each other where they must. Calls
 * beside the chain run behind all of the chain that comes before them, so that they may be given memory as it is given to
 * the chain. The chain waits for them where it depends on them by data; memory is the allocator's to wait for.
 */
export class BranchedCapture {
  readonly #branches: Branches;
  /** By branch; the first one began the capture. */
  readonly #streams: readonly CudaStream[];
  /** For each branch, how many calls of each other one it is known to run behind: all below this index. */
  readonly #behind: number[][];
  /** Of calls that another branch waits for. */
  readonly #events = new Map<number, { readonly event: CudaEvent; readonly behind: readonly number[] }>();
  readonly #awaited: ReadonlySet<number>;
  /** The chain's last nodes when each branch waited for it last; null for branches that have not begun. */
  readonly #forkedAt: (string | null)[];
  readonly #lastNodes: (stream: CudaStream) => readonly number[];

  /** `lastNodes` gives the nodes that the next one on a stream under capture will run behind. */
  constructor(
    branches: Branches,
    streams: readonly CudaStream[],
    lastNodes: (stream: CudaStream) => readonly number[],
  ) {
    this.#branches = branches;
    this.#streams = streams;
    this.#lastNodes = lastNodes;
    this.#behind = streams.map(() => streams.map(() => 0));
    this.#forkedAt = streams.map(() => null);
    this.#awaited = awaitedCalls(branches);
  }

  /** The stream for call `i`, which waits for what the call must run behind. Its memory must be allocated. */
  streamFor(i: number): CudaStream {
    const branch = this.#branches.ofCalls[i]!;
    if (branch !== 0) this.#fork(branch);
    for (const j of this.#latestByBranch(i)) this.#waitFor(branch, j);
    return this.#streams[branch]!;
  }

  /** Behind the capture of call `i`. */
  noteCaptured(i: number): void {
    const branch = this.#branches.ofCalls[i]!;
    this.#behind[branch]![branch] = i + 1;
    if (!this.#awaited.has(i)) return;
    const event = this.#streams[branch]!.recordEvent({ timing: false });
    this.#events.set(i, { event, behind: [...this.#behind[branch]!] });
  }

  /** Lets the chain wait for all that lies beside it. */
  join(): void {
    const [chain, ...sides] = this.#streams;
    sides.forEach((side, i) => {
      if (this.#forkedAt[i + 1] === null) return;
      using event = side.recordEvent({ timing: false });
      chain!.waitFor(event);
    });
    for (const { event } of this.#events.values()) event.dispose();
    this.#events.clear();
  }

  #fork(branch: number): void {
    const [chain] = this.#streams;
    // Beside its calls it has what memory asks for: waits, and poison.
    const end = this.#lastNodes(chain!).join();
    if (this.#forkedAt[branch] === end) return;
    this.#forkedAt[branch] = end;
    using event = chain!.recordEvent({ timing: false });
    this.#streams[branch]!.waitFor(event);
    this.#noteBehind(branch, this.#behind[0]!);
  }

  /** The last call of each other branch that call `i` depends on. */
  #latestByBranch(i: number): number[] {
    const { ofCalls, dependencies } = this.#branches;
    const latest = new Map<number, number>();
    for (const j of dependencies[i]!)
      if (ofCalls[j] !== ofCalls[i]) latest.set(ofCalls[j]!, Math.max(j, latest.get(ofCalls[j]!) ?? j));
    return [...latest.values()];
  }

  #waitFor(branch: number, call: number): void {
    if (this.#behind[branch]![this.#branches.ofCalls[call]!]! > call) return;
    const { event, behind } = this.#events.get(call)!;
    this.#streams[branch]!.waitFor(event);
    this.#noteBehind(branch, behind);
  }

  #noteBehind(branch: number, behind: readonly number[]): void {
    const own = this.#behind[branch]!;
    behind.forEach((calls, other) => (own[other] = Math.max(own[other]!, calls)));
  }
}

/** The calls beside the chain that a call of another branch depends on: what lies on the chain is waited for by forking. */
function awaitedCalls({ ofCalls, dependencies }: Branches): Set<number> {
  const awaited = new Set<number>();
  dependencies.forEach((earlier, i) => {
    for (const j of earlier) if (ofCalls[j] !== 0 && ofCalls[j] !== ofCalls[i]) awaited.add(j);
  });
  return awaited;
}
