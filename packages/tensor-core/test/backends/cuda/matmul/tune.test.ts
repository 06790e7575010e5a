import { describe, expect, it } from 'vitest';
import type { CudaDevice } from '../../../../src/backends/cuda/device.ts';
import { type Block, CublasLt, type LtMatmul, type LtMatmulDescription } from '@roofline/cuda/parts';
import type { MatmulRequest } from '../../../../src/op/cuda-lowering.ts';
import { fastestAlgorithm } from '../../../../src/backends/cuda/matmul/fastest-algorithm.ts';
import { Matmul } from '../../../../src/backends/cuda/matmul/matmul.ts';
import { describeMatmul } from '../../../../src/backends/cuda/matmul/matmul-plans.ts';
import { HostMemory, ffi } from '@roofline/cuda/host';
import { openEmulatedDevice } from '../../../../src/testing.ts';

const request: MatmulRequest = {
  ...{ m: 40, n: 24, k: 1000, batch: 3, inputDType: 'bfloat16', outputDType: 'float32' },
  ...{ a: 0x1000, b: 0x2000, d: 0x3000, transposeA: false, transposeB: true },
  ...{ pitchA: 1000, pitchB: 1008, pitchD: 24 },
  ...{ batchStrideA: 40_000, batchStrideB: 0, batchStrideD: 960, scale: 1 },
};

type Functions = NonNullable<ConstructorParameters<typeof CublasLt>[0]>;

/** A cublasLt whose heuristic finds algorithms of these states, with workspaces of 100 bytes times their number. */
function libraryOf(states: readonly number[], multiply: (algorithm: number) => void = () => {}) {
  let wanted = 0;
  const view = (address: number, byteLength: number) => new Uint8Array(ffi().view(address, byteLength));
  const write = (address: number, bytes: Uint8Array) => view(address, bytes.length).set(bytes);
  const functions = new Proxy(
    {
      cublasLtMatmulAlgoGetHeuristic(...values: number[]) {
        const [most, results, found] = values.slice(-3) as [number, number, number];
        wanted = most;
        const given = states.slice(0, most);
        given.forEach((state, i) => {
          const result = new HostMemory(96);
          result.writeInt64(0, i);
          result.writeInt64(64, 100 * (i + 1));
          result.words[72 / 4] = state;
          write(results + 96 * i, result.bytes);
        });
        write(found, new Uint8Array(Int32Array.of(given.length).buffer));
        return 0;
      },
      cublasLtMatmul(...values: number[]) {
        multiply(new DataView(view(values[12]!, 8).buffer).getUint32(0, true));
        return 0;
      },
    } as Record<string, (...values: number[]) => number>,
    { get: (known, name: string) => known[name] ?? (() => 0) },
  ) as unknown as Functions;
  return { library: new CublasLt(functions), wanted: () => wanted };
}

/** Which of the heuristic's algorithms it is. */
const numberOf = ({ algorithm }: LtMatmul) => algorithm.words[0];

describe('CublasLt', () => {
  const description = describeMatmul(request, { allowTf32: false });

  it('gives the algorithms that can run, each with its workspace', () => {
    const { library, wanted } = libraryOf([0, 15, 0, 0]);
    const candidates = library.candidates(description, 3);
    expect(candidates.map((each) => [numberOf(each), each.workspaceBytes])).toEqual([
      [0, 100],
      [2, 300],
    ]);
    expect(new Set(candidates.map(({ algorithm }) => algorithm.address)).size).toBe(2);
    expect(wanted()).toBe(3);
    expect(numberOf(library.prepare(description))).toBe(0);
    expect(wanted()).toBe(1);
  });

  it('says so if none can', () => {
    for (const states of [[], [15]])
      expect(() => libraryOf(states).library.candidates(description, 4)).toThrow(
        /no algorithm .*"rows":1000/,
      );
  });
});

describe('fastestAlgorithm', () => {
  const description = describeMatmul(request, { allowTf32: false });
  const device = openEmulatedDevice();

  /** `device` with a clock that reads `now`. */
  const timedBy = (now: () => number) => {
    const { stream } = device;
    const recordEvent = () => {
      const timeMs = now();
      return { timeMs, elapsedMs: (earlier: { timeMs: number }) => timeMs - earlier.timeMs };
    };
    return {
      facts: device.facts,
      allocateBlock: (byteLength: number) => device.allocateBlock(byteLength),
      freeBlock: (block: Block) => device.freeBlock(block),
      write: (...given: Parameters<CudaDevice['write']>) => device.write(...given),
      stream: {
        handle: stream.handle,
        fill: (...given: Parameters<typeof stream.fill>) => stream.fill(...given),
        copy: (...given: Parameters<typeof stream.copy>) => stream.copy(...given),
        recordEvent,
      },
    } as unknown as CudaDevice;
  };

  /** Algorithms that take so many milliseconds, except their first run, in the opposite order. */
  function chosen(durations: readonly number[], states = durations.map(() => 0)) {
    let clock = 0;
    const runs = durations.map(() => 0);
    const { library } = libraryOf(states, (algorithm) => {
      clock += durations[algorithm]! * (runs[algorithm]!++ === 0 ? 1000 ** (3 - algorithm) : 1);
    });
    const before = device.memoryStatistics();
    const fastest = fastestAlgorithm(
      timedBy(() => clock),
      library,
      description,
    );
    device.synchronize();
    expect(device.memoryStatistics().allocatedBytes).toBe(before.allocatedBytes);
    return { algorithm: numberOf(fastest), runs };
  }

  it('takes the one that takes the least time, each tried equally often', () => {
    const { algorithm, runs } = chosen([3, 4, 2, 3]);
    expect(algorithm).toBe(2);
    expect(runs).toEqual(runs.map(() => runs[0]));
    expect(runs[0]).toBeGreaterThan(3);
  });

  it('keeps to the first unless another is clearly faster', () => {
    expect(chosen([1, 0.99])).toMatchObject({ algorithm: 0 });
    expect(chosen([1, 0.97])).toMatchObject({ algorithm: 1 });
  });

  it('leaves out what cannot run, and tries nothing where there is no choice', () => {
    expect(chosen([30, 1, 100], [0, 15, 0])).toMatchObject({ algorithm: 0 });
    expect(chosen([5])).toEqual({ algorithm: 0, runs: [0] });
  });
});

describe('Matmul', () => {
  it('chooses for as many multiprocessors as it finds free', () => {
    const prepared: LtMatmulDescription[] = [];
    const library = {
      prepare: (description: LtMatmulDescription) =>
        ({ desc: prepared.push(description), workspaceBytes: 0 }) as LtMatmul,
      run: () => undefined,
    } as unknown as CublasLt;
    let free: number | undefined;
    const matmul = new Matmul(
      { current: { handle: 1 } },
      () => 0,
      () => undefined,
      null,
      () => library,
      () => {
        throw new Error('not tuned');
      },
      () => free,
    );
    for (free of [undefined, 124, undefined, 124]) matmul.run(request);
    expect(prepared).toEqual([
      describeMatmul(request, { allowTf32: false }),
      describeMatmul(request, { allowTf32: false, multiprocessors: 124 }),
    ]);
  });

  it('takes the chosen algorithms where it is tuned, and chooses each once', () => {
    const ran: [LtMatmul, number][] = [];
    const tuned: LtMatmulDescription[] = [];
    const plan = (desc: number) => ({ desc, workspaceBytes: 0 }) as LtMatmul;
    const library = {
      prepare: () => plan(1),
      run: (matmul: LtMatmul, _: unknown, { alpha }: { alpha: number }) => ran.push([matmul, alpha]),
    } as unknown as CublasLt;
    const choose = (_: CublasLt, description: LtMatmulDescription) => plan(10 + tuned.push(description));
    const matmul = new Matmul(
      { current: { handle: 1 } },
      () => 0,
      () => undefined,
      null,
      () => library,
      choose,
      () => undefined,
    );
    const other = { ...request, m: 41, scale: 2 };
    const both = () => [request, other, request].forEach((each) => matmul.run(each));
    const descs = () => ran.splice(0).map(([{ desc }]) => desc);
    matmul.tune(both);
    expect(descs()).toEqual([1, 1, 1]);
    expect(tuned).toEqual([
      describeMatmul(request, { allowTf32: false }),
      describeMatmul(other, { allowTf32: false }),
    ]);
    matmul.withTuned(both);
    expect(descs()).toEqual([11, 12, 11]);
    both();
    expect(descs()).toEqual([1, 1, 1]);
    matmul.tune(both);
    expect(tuned).toHaveLength(2);
    const failure = () => {
      throw new Error('half-way');
    };
    expect(() => matmul.withTuned(failure)).toThrow('half-way');
    expect(() => matmul.tune(failure)).toThrow('half-way');
    ran.length = 0;
    both();
    expect(descs()).toEqual([1, 1, 1]);
  });
});
