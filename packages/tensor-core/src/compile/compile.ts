import { autocastDType } from '../op/autocast/autocast.ts';
import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import { getFloat32MatmulPrecision } from '../op/float32-matmul-precision.ts';
import { CompileError, OutOfMemoryError } from '../base/errors.ts';
import { checkOptions } from '../base/check-options.ts';
import { checkCount, checkFlag } from '../base/check-value.ts';
import { refuseAsync, refusePromise } from '../base/synchronous.ts';
import { areDrawsFollowed } from '../tensor/random/draw.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import { tracing } from '../tensor/tracing.ts';
import { CompiledProgram, type ProgramExplanation } from './specialization.ts';
import { type EscapedTensor, findEscapedTensor } from './trace/escaped-tensors.ts';
import type { PrepareOptions } from './executable/executable.ts';
import { writtenArguments } from './graph/graph.ts';
import { copyOfArgument, takeOutOfArgumentCopies, writeBack } from './trace/argument-copies.ts';
import { Trace } from './trace/trace.ts';
import { traced } from './trace/traced.ts';
import { checkResult, describeArguments, holdsSame, mapInstances } from './trace/values.ts';

/** Options of `compile`. */
export interface CompileOptions {
  /** Programs that are kept, one for each signature; beyond it the one used longest ago is dropped. Default 16. */
  readonly cacheSize?: number;
  /**
   * Whether a GPU times several algorithms for each of a program's matrix products before the first replay and takes the
   * fastest, from then on the same one, so that replays give the same bits; eager products may add in another order. It
   * needs memory for the operands of one product beside the program's own. On the CPU it changes nothing. Default false.
   */
  readonly autotune?: boolean;
}

/** What a compiled function's cache has done. */
export interface CompileCache {
  readonly size: number;
  readonly capacity: number;
  /** Calls that a program ran. */
  readonly hits: number;
  /** Calls that ran eagerly, and were written down. */
  readonly misses: number;
}

type AnyFunction = (...values: never[]) => unknown;

/** What `compile` gives: the function, and what became of it. */
export type CompiledFunction<F extends AnyFunction> = ((...values: Parameters<F>) => ReturnType<F>) & {
  readonly cache: CompileCache;
  /** The programs that are kept, the one used last at the end. */
  explain(): ProgramExplanation[];
  /** Frees the programs, and parameters that nobody but them has any more; the next call writes a new one. */
  dispose(): void;
};

/** Calls in a row that may make tensors that stay, such as an optimizer's moments. */
const mostPreparingCalls = 4;

/**
 * A function that does what `fn` does, and from its second call on without running its JavaScript: the first call with
 * a signature runs eagerly and is written down op by op as a program, which later calls run as a whole. `fn` may take and
 * return tensors, also in arrays and plain objects, run backward passes and optimizer steps. A program is used while the
 * shapes, strides, dtypes and devices of the arguments, other arguments by value (functions and objects of classes by themselves:
 * what may change in them `fn` reads by `dependOn`), grad mode, autocast, the leaves that require a gradient and what
 * `dependOn` reads are the same; else the call is written down anew. Results are tensors of their own, but for those that `fn`
 * found outside and returns, such as a parameter; on a GPU they and gradients lie where the program writes them until it runs
 * again: whoever still holds one then finds its elements elsewhere, at another `address` (`Storage.hold` keeps it in place).
 *
 * Under `profile`, `recordMemory` and other observers of replays a GPU runs the program as always; on the CPU, and for
 * observers of ops alone, its ops run one by one, unfused (see `Observer`). Range listeners hear of what the host does: of
 * the first call.
 *
 * Inside another compiled function it is a part of that one; inside `checkpoint` it runs eagerly, for the backward pass repeats
 * the random numbers that it draws.
 *
 * Throws a CompileError for what a replay could not repeat: values read or written by the host, histories in results or in
 * tensors from outside, `requiresGrad_` of those, gradients of arguments that are no leaves, tensors that stay behind the function at every call, arrays and objects among
 * the arguments that it changes, arguments that share memory with what it writes elsewhere (it works on copies of them); these
 * then are as they were. Throws what `fn` throws, too, in the first call and in replays: what was written before that, to
 * arguments and to tensors from outside, stays written, as in eager code; gradients that a replay would have replaced may be
 * gone.
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
  checkOptions('compile', options, ['cacheSize', 'autotune']);
  const { cacheSize = 16, autotune = false } = options;
  checkCount('compile', 'cacheSize', cacheSize, 1);
  checkFlag('compile', 'autotune', autotune);
  const compiled = new Compiled(fn, cacheSize, { autotune });
  const call = (...values: Parameters<F>) => compiled.call(values) as ReturnType<F>;
  return Object.defineProperties(call, {
    cache: { get: () => compiled.cache },
    explain: { value: () => compiled.explain() },
    dispose: { value: () => compiled.dispose() },
  }) as CompiledFunction<F>;
}

interface KeptProgram {
  readonly signature: string;
  readonly program: CompiledProgram;
}

class Compiled {
  readonly #fn: AnyFunction;
  readonly #capacity: number;
  readonly #options: PrepareOptions;
  /** By signature, the one used last at the end; of one signature several may differ in what else they depend on. */
  readonly #programs = new Set<KeptProgram>();
  #hits = 0;
  #misses = 0;
  #preparing = 0;
  #hasWarned = false;

  constructor(fn: AnyFunction, capacity: number, options: PrepareOptions) {
    this.#fn = fn;
    this.#capacity = capacity;
    this.#options = options;
  }

  get cache(): CompileCache {
    return { size: this.#programs.size, capacity: this.#capacity, hits: this.#hits, misses: this.#misses };
  }

  call(values: readonly unknown[]): unknown {
    // Inside another compiled function it is a part of that one's program. A checkpoint runs again what it has seen.
    if (tracing.active || areDrawsFollowed()) return this.#fn(...(values as never[]));
    const described = describeArguments(values);
    const modes = [isGradEnabled(), autocastDType(), getFloat32MatmulPrecision()].join();
    const signature = `${modes} ${described.signature}`;
    const program = this.#find(signature);
    if (program) {
      this.#hits++;
      return program.run(described.tensors);
    }
    this.#misses++;
    return this.#write(signature, values, described.tensors);
  }

  explain(): ProgramExplanation[] {
    return [...this.#programs].map(({ program }) => program.explain());
  }

  dispose(): void {
    for (const { program } of this.#programs) program.dispose();
    this.#programs.clear();
  }

  #find(signature: string): CompiledProgram | null {
    for (const entry of this.#programs) {
      if (!entry.program.isAlive) this.#drop(entry);
      else if (entry.signature === signature && entry.program.fits) {
        this.#programs.delete(entry);
        this.#programs.add(entry);
        return entry.program;
      }
    }
    return null;
  }

  #drop(entry: KeptProgram): void {
    this.#programs.delete(entry);
    entry.program.dispose();
  }

  /** Runs the function eagerly on copies of its caller's tensors, and keeps a program of what it did. */
  #write(signature: string, values: readonly unknown[], tensors: readonly Tensor[]): unknown {
    return scope(() => {
      const argumentCopies = tensors.map(copyOfArgument);
      const given = mapInstances(values, Tensor, (x) => argumentCopies[tensors.indexOf(x)] ?? x) as never[];
      const givenBefore = mapInstances(given, Tensor, (x) => x);
      const trace = new Trace(argumentCopies, { originals: tensors, namesMakers: this.#preparing > 0 });
      let program: CompiledProgram | null = null;
      try {
        const result = traced(trace, () => refusePromise('compile', this.#fn(...given)));
        refuseChanged(given, givenBefore, argumentCopies);
        // What runs no op has nothing to compile.
        if (trace.device) program = this.#programOf(trace, result);
        trace.handleChanges.check(argumentCopies);
        takeOutOfArgumentCopies(trace, argumentCopies);
        writeBack(writtenArguments(trace), tensors, argumentCopies);
        if (program) this.#add(signature, program);
        else trace.release();
        return result;
      } catch (error) {
        takeOutOfArgumentCopies(trace, argumentCopies);
        // What throws in eager code has written by then what it has written; what is refused here leaves arguments alone.
        if (!(error instanceof CompileError)) writeBack(writtenArguments(trace), tensors, argumentCopies);
        if (program) program.dispose();
        else trace.release();
        throw error;
      }
    });
  }

  /** Null for what a replay could not make again, but need not: at the next call it is there. */
  #programOf(trace: Trace, result: unknown): CompiledProgram | null {
    checkResult(result);
    const escaped = findEscapedTensor(trace, result);
    if (!escaped) return this.#programIfMemory(trace, result);
    this.#expectNoMore(escaped);
    return null;
  }

  /** Null where there is no memory for its constants: what the function has done is done, and the next call may find some. */
  #programIfMemory(trace: Trace, result: unknown): CompiledProgram | null {
    try {
      return new CompiledProgram(this.#fn.name, trace, result, this.#options);
    } catch (error) {
      if (error instanceof OutOfMemoryError) return null;
      throw error;
    }
  }

  #add(signature: string, program: CompiledProgram): void {
    this.#preparing = 0;
    this.#programs.add({ signature, program });
    if (this.#programs.size <= this.#capacity) return;
    this.#drop(this.#programs.values().next().value!);
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `compile: more than ${this.#capacity} signatures of one function were compiled, and the oldest are dropped. They differ ` +
        'in shapes, in numbers or texts, or in which functions or objects of classes are passed: pad what changes, pass it as ' +
        'tensors or in plain objects, or give a larger cacheSize.',
      { code: 'ROOFLINE_COMPILE_CACHE' },
    );
  }

  /** An optimizer's first step makes its moments: the next call finds them. */
  #expectNoMore({ what, remedy, place }: EscapedTensor): void {
    if (++this.#preparing <= mostPreparingCalls) return;
    throw new CompileError(
      `compile: ${what} stays behind at every call, and a replay could not make another; return it, or ${remedy}.`,
      { place },
    );
  }
}

/** Throws a CompileError where a function has changed what it was given: those are copies, which replays do not make. */
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
