import { autocastDType } from '../op/autocast/autocast.ts';
import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import { getFloat32MatmulPrecision } from '../op/float32-matmul-precision.ts';
import { CompileError } from '../base/errors.ts';
import {
  OutOfMemoryError,
  checkCount,
  checkFlag,
  checkOptions,
  refuseAsync,
  refusePromise,
  wrongArgument,
} from '@roofline/cuda/host';
import { areDrawsFollowed } from '../tensor/random/draw.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import { tracing } from '../tensor/tracing.ts';
import { Specialization, type CompileExplanation } from './specialization.ts';
import { type EscapedTensor, findEscapedTensor } from './trace/escaped-tensors.ts';
import { type BranchChoice, type ExecutableOptions, branchChoices } from './executable/executable.ts';
import { writtenArguments } from './graph/graph.ts';
import { budgetBytes } from './memory-budget.ts';
import { copyOfArgument, takeOutOfArgumentCopies, writeBack } from './trace/argument-copies.ts';
import { Trace } from './trace/trace.ts';
import { traced } from './trace/traced.ts';
import { checkResult, describeArguments, holdsSame, mapInstances } from './trace/values.ts';

/** Options of `compile`. */
export interface CompileOptions {
  /** How many specializations are kept, one for each signature; the least recently used is dropped. Default 16. */
  readonly cacheSize?: number;
  /**
   * Whether a GPU times several algorithms for each matrix product before the first replay and keeps the fastest, so that all
   * replays give the same bits; eager products may add in another order. Timing needs memory for the operands of one product,
   * besides the graph's own. No effect on the CPU. Default false.
   */
  readonly autotune?: boolean;
  /**
   * Which calls a GPU runs concurrently with others, on a branch of the CUDA graph: `auto` chooses long calls that overlap with
   * short ones, which leave multiprocessors idle, where that takes no more memory; `always` is every call that can, `never` a single
   * chain. Results are the same bits. No effect on the CPU. Default `auto`.
   */
  readonly branches?: BranchChoice;
  /**
   * The memory that a replay may take on a GPU, in bytes or as a text such as `100GiB`: parameters, an optimizer's state, arguments,
   * what the graph makes, and copies that it keeps, but not the workspaces of kernels. Where the function as it stands takes more,
   * intermediates are freed and made again before their next use: those first that free the most bytes for each FLOP. Where there is
   * room, what `checkpoint` would make again is kept. Results are the same bits. The first call runs eagerly and keeps to no budget. A
   * CompileError says the least that is possible where that is more; the CPU, which allocates as it goes, takes no budget. Default: none.
   */
  readonly memoryBudget?: number | string;
}

/** What a compiled function's cache has done. */
export interface CompileCache {
  readonly size: number;
  readonly capacity: number;
  /** Calls that were replayed. */
  readonly hits: number;
  /** Calls that ran eagerly, and were traced. */
  readonly misses: number;
}

type AnyFunction = (...values: never[]) => unknown;

/** What `compile` returns: the function, and what has been compiled of it. */
export type CompiledFunction<F extends AnyFunction> = ((...values: Parameters<F>) => ReturnType<F>) & {
  readonly cache: CompileCache;
  /** The specializations that are kept, the most recently used last. */
  explain(): CompileExplanation[];
  /** Frees the specializations, and parameters that only they still hold; the next call traces again. */
  dispose(): void;
};

/** Consecutive calls allowed to leave tensors behind, as an optimizer's first step leaves its moments. */
const mostPreparingCalls = 4;

/**
 * A function that does what `fn` does, but from its second call on without running its JavaScript: the first call with a
 * signature runs eagerly and is traced op by op; later calls replay the compiled graph as a whole. `fn` may take and return
 * tensors, also in arrays and plain objects, and run backward passes and optimizer steps. A specialization is reused while
 * these are the same: shapes, strides, dtypes and devices of tensor arguments; other arguments by value (functions and
 * instances of classes by identity: `fn` reads what may change in them through `dependOn`); grad mode; autocast; which leaves
 * require a gradient; and what `dependOn` reads. Otherwise the call is traced again. Results are new tensors, except those
 * that `fn` found outside and returns, such as a parameter. On a GPU results and gradients lie where the graph writes them
 * until the next replay, which moves those that are still held to memory of their own, at another `address`
 * (`Storage.hold` keeps one in place).
 *
 * Under `profile`, `recordMemory` and other observers of replays a GPU replays the graph as usual; on the CPU, and for
 * observers of ops only, its ops run one by one, unfused (see `Observer`). Range listeners are called for what the host does,
 * so only in the first call.
 *
 * Inside another compiled function it becomes part of that one; inside `checkpoint` it runs eagerly, because the backward
 * pass repeats the random numbers that it draws.
 *
 * Throws a CompileError for what a replay could not repeat: values read or written by the host; histories in results or in
 * tensors from outside, and `requiresGrad_` of the latter; gradients of arguments that are not leaves; tensors left behind by
 * every call; arrays and objects among the arguments that `fn` changes; arguments that share memory with what it writes
 * elsewhere (it works on copies of them). The arguments are then unchanged. Also throws what `fn` throws, in the first call
 * and in replays: as in eager code, what was written to arguments and to tensors from outside before that stays written;
 * gradients that a replay was about to replace may be gone.
 *
 * @example
 * ```ts
 * import { type Tensor, add, compile, mul, tensor } from '@roofline/tensor-core';
 *
 * const step = compile((x: Tensor) => add(mul(x, 2), 1));
 * for (const value of [1, 2, 3]) console.log(step(tensor([value])).toArray()); // [3], [5], [7]
 * ```
 */
export function compile<F extends AnyFunction>(fn: F, options: CompileOptions = {}): CompiledFunction<F> {
  refuseAsync('compile', fn);
  checkOptions('compile', options, ['cacheSize', 'autotune', 'branches', 'memoryBudget']);
  const { cacheSize = 16, autotune = false, branches = 'auto' } = options;
  checkCount('compile', 'cacheSize', cacheSize, 1);
  checkFlag('compile', 'autotune', autotune);
  if (!branchChoices.includes(branches))
    throw wrongArgument('compile', 'branches', `one of ${branchChoices.join(', ')}`, branches);
  const memoryBudget =
    options.memoryBudget === undefined ? undefined : budgetBytes('compile', options.memoryBudget);
  const compiled = new Compiled(fn, cacheSize, { autotune, branches, memoryBudget });
  const call = (...values: Parameters<F>) => compiled.call(values) as ReturnType<F>;
  return Object.defineProperties(call, {
    cache: { get: () => compiled.cache },
    explain: { value: () => compiled.explain() },
    dispose: { value: () => compiled.dispose() },
  }) as CompiledFunction<F>;
}

interface KeptSpecialization {
  readonly signature: string;
  readonly specialization: Specialization;
}

class Compiled {
  readonly #fn: AnyFunction;
  readonly #capacity: number;
  readonly #options: ExecutableOptions;
  /** The most recently used last; several of one signature may differ in what else they depend on. */
  readonly #specializations = new Set<KeptSpecialization>();
  #hits = 0;
  #misses = 0;
  #preparing = 0;
  #hasWarned = false;

  constructor(fn: AnyFunction, capacity: number, options: ExecutableOptions) {
    this.#fn = fn;
    this.#capacity = capacity;
    this.#options = options;
  }

  get cache(): CompileCache {
    return {
      size: this.#specializations.size,
      capacity: this.#capacity,
      hits: this.#hits,
      misses: this.#misses,
    };
  }

  call(values: readonly unknown[]): unknown {
    // Inside another compiled function it becomes part of that one's graph. A checkpoint runs its function again.
    if (tracing.active || areDrawsFollowed()) return this.#fn(...(values as never[]));
    const described = describeArguments(values);
    const modes = [isGradEnabled(), autocastDType(), getFloat32MatmulPrecision()].join();
    const signature = `${modes} ${described.signature}`;
    const specialization = this.#find(signature);
    if (specialization) {
      this.#hits++;
      return specialization.run(described.tensors);
    }
    this.#misses++;
    return this.#write(signature, values, described.tensors);
  }

  explain(): CompileExplanation[] {
    return [...this.#specializations].map(({ specialization }) => specialization.explain());
  }

  dispose(): void {
    for (const { specialization } of this.#specializations) specialization.dispose();
    this.#specializations.clear();
  }

  #find(signature: string): Specialization | null {
    for (const entry of this.#specializations) {
      if (!entry.specialization.isAlive) this.#drop(entry);
      else if (entry.signature === signature && entry.specialization.fits) {
        this.#specializations.delete(entry);
        this.#specializations.add(entry);
        return entry.specialization;
      }
    }
    return null;
  }

  #drop(entry: KeptSpecialization): void {
    this.#specializations.delete(entry);
    entry.specialization.dispose();
  }

  /** Runs the function eagerly on copies of its caller's tensors, and keeps a specialization of what it did. */
  #write(signature: string, values: readonly unknown[], tensors: readonly Tensor[]): unknown {
    return scope(() => {
      const argumentCopies = tensors.map(copyOfArgument);
      const given = mapInstances(values, Tensor, (x) => argumentCopies[tensors.indexOf(x)] ?? x) as never[];
      const givenBefore = mapInstances(given, Tensor, (x) => x);
      const trace = new Trace(argumentCopies, { originals: tensors, namesMakers: this.#preparing > 0 });
      let specialization: Specialization | null = null;
      try {
        const result = traced(trace, () => refusePromise('compile', this.#fn(...given)));
        refuseChanged(given, givenBefore, argumentCopies);
        // Without a device no op has run: there is nothing to compile.
        if (trace.device) specialization = this.#specializationOf(trace, result);
        trace.handleChanges.check(argumentCopies);
        takeOutOfArgumentCopies(trace, argumentCopies);
        writeBack(writtenArguments(trace), tensors, argumentCopies);
        if (specialization) this.#add(signature, specialization);
        else trace.release();
        return result;
      } catch (error) {
        takeOutOfArgumentCopies(trace, argumentCopies);
        // What eager code wrote before it threw stays written; a refusal leaves arguments alone.
        if (!(error instanceof CompileError)) writeBack(writtenArguments(trace), tensors, argumentCopies);
        if (specialization) specialization.dispose();
        else trace.release();
        throw error;
      }
    });
  }

  /** Null where a tensor stays behind that a replay could not make, but need not either: the next call may find it there. */
  #specializationOf(trace: Trace, result: unknown): Specialization | null {
    checkResult(result);
    const escaped = findEscapedTensor(trace, result);
    if (!escaped) return this.#specializationIfMemory(trace, result);
    this.#expectNoMore(escaped);
    return null;
  }

  /** Null where there is no memory for its constants: the function has run all the same, and the next call may find some. */
  #specializationIfMemory(trace: Trace, result: unknown): Specialization | null {
    try {
      return new Specialization(this.#fn.name, trace, result, this.#options);
    } catch (error) {
      if (error instanceof OutOfMemoryError) return null;
      throw error;
    }
  }

  #add(signature: string, specialization: Specialization): void {
    this.#preparing = 0;
    this.#specializations.add({ signature, specialization });
    if (this.#specializations.size <= this.#capacity) return;
    this.#drop(this.#specializations.values().next().value!);
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `compile: more than ${this.#capacity} signatures of one function were compiled, and the oldest are dropped. They differ ` +
        'in shapes, in numbers or texts, or in which functions or objects of classes are passed: pad what changes, pass it as ' +
        'tensors or in plain objects, or give a larger cacheSize.',
      { code: 'ROOFLINE_COMPILE_CACHE' },
    );
  }

  /** Throws once too many consecutive calls have left tensors behind. */
  #expectNoMore({ what, remedy, place }: EscapedTensor): void {
    if (++this.#preparing <= mostPreparingCalls) return;
    throw new CompileError(
      `compile: ${what} stays behind at every call, and a replay could not make another; return it, or ${remedy}.`,
      { place },
    );
  }
}

/** Throws a CompileError if a function has changed its arrays and objects, or disposed of arguments: replays would not. */
function refuseChanged(given: unknown, before: unknown, argumentCopies: readonly Tensor[]): void {
  if (argumentCopies.some(({ isDisposed }) => isDisposed)) {
    throw new CompileError(
      'compile: the function disposes of an argument, of which it has a copy: its caller would keep it; dispose of it outside.',
    );
  }
  if (holdsSame(given, before)) return;
  throw new CompileError(
    'compile: the function puts something into an array or an object among its arguments, or takes something out, which ' +
      'replays would not; return what it puts there, or let it work on a copy.',
  );
}
