import {
  fillInPlace,
  full,
  keep,
  OutOfMemoryError,
  scope,
  type Device,
  type Tensor,
} from '@roofline/tensor-core';
import type { AttentionKind } from '../../attention/kinds.ts';
import { attend, clearGradients, type AttentionOperands } from '../../attention/operands.ts';
import type { Pass } from '../../attention/work.ts';
import { doBench } from '../../measuring/do-bench.ts';
import type { Contender, Turn } from './contender.ts';

const MEBIBYTE = 2 ** 20;
/** What `triton.testing.do_bench` writes. */
const LEAST_FLUSHED_BYTES = 256 * MEBIBYTE;

/** Bytes that are more than a GPU's L2 cache holds; 0 on the CPU, where nothing is flushed. */
export function flushedBytesOf(device: Device): number {
  if (device.type === 'cpu') return 0;
  return Math.max(LEAST_FLUSHED_BYTES, 2 * MEBIBYTE * Number(device.properties()['l2MiB'] ?? 0));
}

/** Overwrites one buffer, which exists from the first call on. */
export class CacheFlush implements Disposable {
  readonly #device: Device;
  readonly #byteLength: number;
  #buffer: Tensor | null = null;

  constructor(device: Device, byteLength: number) {
    this.#device = device;
    this.#byteLength = byteLength;
  }

  run(): void {
    if (this.#byteLength === 0) return;
    // It outlives the scope of the turn that it is made in.
    this.#buffer ??= keep(full([this.#byteLength / 4], 0, { dtype: 'float32', device: this.#device }));
    fillInPlace(this.#buffer, 0);
  }

  [Symbol.dispose](): void {
    this.#buffer?.dispose();
    this.#buffer = null;
  }
}

/** One of our attentions. All of a cell share operands and buffer. */
export class OwnContender implements Contender {
  readonly name;
  readonly #kind: AttentionKind;
  readonly #device: Device;
  readonly #operands: AttentionOperands;
  readonly #flush: CacheFlush;

  constructor(kind: AttentionKind, device: Device, operands: AttentionOperands, flush: CacheFlush) {
    this.name = { side: 'ours', attention: kind } as const;
    this.#kind = kind;
    this.#device = device;
    this.#operands = operands;
    this.#flush = flush;
  }

  /** The second time counts: the first one may take memory to stay. */
  async probe(): Promise<number> {
    try {
      for (let time = 0; time < 2; time++) {
        this.#device.resetPeakMemory();
        this.#both();
        clearGradients(this.#operands);
      }
      this.#device.synchronize();
      return this.#device.memoryStatistics().peakAllocatedBytes;
    } finally {
      this.#giveBack();
    }
  }

  async sample(pass: Pass, turn: Turn): Promise<number[]> {
    const options = {
      ...turn,
      beforeEach: () => clearGradients(this.#operands),
      flush: () => this.#flush.run(),
    };
    try {
      return scope(() => doBench(this.#device, this.#workOf(pass), options));
    } finally {
      this.#giveBack();
    }
  }

  explain(error: unknown): ReturnType<Contender['explain']> {
    return error instanceof OutOfMemoryError ? { status: 'out-of-memory', reason: error.message } : null;
  }

  /** Call it in a scope, which keeps the output of the pass that backward runs from. */
  #workOf(pass: Pass): () => void {
    const { gradient } = this.#operands;
    if (pass === 'forward') return () => scope(() => void attend(this.#kind, this.#operands));
    if (pass === 'both') return () => this.#both();
    const output = attend(this.#kind, this.#operands);
    return () => output.backward(gradient, { retainGraph: true });
  }

  #both(): void {
    scope(() => attend(this.#kind, this.#operands).backward(this.#operands.gradient));
  }

  /** Leaves to others, the peer's process among them, what this attention does not need. */
  #giveBack(): void {
    clearGradients(this.#operands);
    this.#device.emptyCache();
  }
}
