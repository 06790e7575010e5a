import { type EffectOrder, device, fromTypedArray, noGrad, scope, zeros } from '@roofline/tensor-core';
import { agreeOnProgram } from './agree-on-program.ts';
import type { Backend, Failure, Outcome } from './backend.ts';
import { type Members, describeCall, errorOf } from './describe-call.ts';
import type { Call } from './prepared-call.ts';
import { noteHeard, noteUnheard } from './unheard-failures.ts';
import type { Work } from './work.ts';

/** What compiled functions ask of a group whose calls they hold. */
export class GroupPrograms implements EffectOrder {
  readonly #members: Members;
  readonly #backend: Backend;
  readonly #start: (call: Call) => Work;
  readonly #assertNotDisposed: (op: string) => void;

  /** `start` begins a call of the group; `assertNotDisposed` throws, naming `op`, once it is of no use. */
  constructor(
    members: Members,
    backend: Backend,
    start: (call: Call) => Work,
    assertNotDisposed: (op: string) => void,
  ) {
    this.#members = members;
    this.#backend = backend;
    this.#start = start;
    this.#assertNotDisposed = assertNotDisposed;
  }

  get multiprocessors(): number {
    return this.#backend.multiprocessors;
  }

  agree(program: string, calls: readonly string[]): void {
    agreeOnProgram(this.#members, (words) => this.#gather(words), program, calls);
  }

  assertUsable(program: string): void {
    this.#assertNotDisposed(nameOf(program));
    this.#throwFailure(program, this.#backend.programs!.failure());
  }

  launch(program: string, calls: readonly string[], launch: () => void): void {
    const name = nameOf(program);
    const description = describeCall(`replay of ${name}`, calls, null);
    const onSettled = (outcome: Outcome) => {
      const error = errorOf(name, outcome, this.#members, description, null);
      if (error) noteUnheard(this.#members, error);
    };
    this.#throwFailure(program, this.#backend.programs!.launch({ description, onSettled }, launch));
  }

  beforeEnd(drop: () => void): () => void {
    return this.#backend.programs!.beforeEnd(drop);
  }

  #throwFailure(program: string, failure: Failure | null): void {
    if (!failure) return;
    noteHeard(this.#members);
    throw errorOf(nameOf(program), failure, this.#members, '', null)!;
  }

  /** All ranks' words, by a call that says what it is for. */
  #gather(words: Int32Array<ArrayBuffer>): number[][] {
    const { ranks } = this.#members;
    const where = { device: this.#backend.device ?? device('cpu') };
    return noGrad(() =>
      scope(() => {
        const own = fromTypedArray(words, [words.length], where);
        const all = zeros([ranks.length, words.length], { dtype: 'int32', ...where });
        const details = ['before the first replay'];
        this.#start({ kind: 'allGather', details, input: own, output: all, like: own }).wait();
        // Whether it has failed is known only now on a GPU.
        this.#start({ kind: 'barrier' }).wait();
        const values = all.toFlatArray();
        return ranks.map((_, i) => values.slice(i * words.length, (i + 1) * words.length));
      }),
    );
  }
}

/** A compiled function in errors. */
function nameOf(program: string): string {
  return program === '' ? 'a compiled function' : program;
}
