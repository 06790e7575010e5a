import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { cpuKernels, gpuKernels } from '../../../src/observe/profiler/kernels.ts';
import { type OpCall, OpRecorder } from '../../../src/observe/profiler/op-recorder.ts';

const inJavaScript = t.defineOp({
  name: 'inJavaScript',
  autocast: 'none',
  infer: ([x]) => [x!],
  cuda: { kind: 'pointwise', expressions: () => ['a'] },
  cpu: { kind: 'host', run: () => undefined },
});
const call = (startMs: number, endMs: number, deviceType: 'cpu' | 'cuda' = 'cuda'): OpCall => ({
  ...{ members: [], graph: null, isBeside: false },
  ...{ op: inJavaScript as OpCall['op'], attributes: undefined, inputs: [], range: null, allocatedBytes: 0 },
  ...{ outputs: [{ shape: [2], dtype: 'float32' }], startMs, endMs, deviceType, deviceLabel: deviceType },
});

describe('gpuKernels', () => {
  const activity = (correlationId: number, graphNodeId = 0) => ({
    ...{ kind: 'kernel' as const, name: '_Z3addv', startNs: 5_000, endNs: 7_500, correlationId, graphNodeId },
    ...{ device: 1, stream: 13, byteLength: null, grid: [1, 2, 3] as const, block: [32, 1, 1] as const },
  });
  const opOf = (queuedMs: number | null, calls: readonly OpCall[]) => {
    const queuedAtMs = new Map(queuedMs === null ? [] : [[7, queuedMs]]);
    return gpuKernels({ activities: [activity(7)], queuedAtMs, droppedRecords: 0 }, calls)[0]!.op;
  };

  it('reports an activity in microseconds, its queue and its shape', () => {
    const queuedAtMs = new Map([[7, 2]]);
    expect(gpuKernels({ activities: [activity(7)], queuedAtMs, droppedRecords: 0 }, [call(1, 3)])).toEqual([
      {
        ...{ name: 'add()', kind: 'kernel', startUs: 5, durationUs: 2.5, stream: 'cuda:1 stream 13', op: 0 },
        ...{ byteLength: null, grid: [1, 2, 3], block: [32, 1, 1] },
      },
    ]);
  });

  it('names the op that was running when it was queued, bounds included; none between ops', () => {
    const calls = [call(10, 20), call(30, 40), call(50, 60), call(70, 80), call(90, 100)];
    const found = [5, 10, 15, 20, 25, 30, 40, 45, 55, 69, 70, 80, 90, 100, 101].map((ms) => opOf(ms, calls));
    expect(found).toEqual([null, 0, 0, 0, null, 1, 1, null, 2, null, 3, 3, 4, 4, null]);
    expect(opOf(null, calls)).toBeNull();
    expect(opOf(15, [])).toBeNull();
  });

  describe('of a graph', () => {
    // Launched from 20 to 22: its first call is two nodes, its second none, its third one.
    const graph = { name: 'step', firstCall: 1, nodes: [2, 0, 1] };
    const calls = [call(10, 11), { ...call(20, 20.5), graph }, { ...call(20.5, 21.5), graph }];
    calls.push({ ...call(21.5, 22), graph }, call(30, 31));
    const queuedAtMs = new Map([[1, 10.5], [2, 21], [3, 30.5]]); // prettier-ignore
    const kernels = (ran: readonly number[], droppedRecords = 0) =>
      gpuKernels({ activities: ran.map((id) => activity(id)), queuedAtMs, droppedRecords }, calls);

    it('have the ops of its nodes, in their order', () => {
      expect(kernels([1, 2, 2, 3, 2]).map(({ op }) => op)).toEqual([0, 1, 1, 4, 3]);
    });

    it('are told by the order of their ids where branches ran in another, and are on a stream of their own', () => {
      const branched = calls.map((each, i) => ({ ...each, isBeside: i === 1 }));
      // The third node, of the third call, ran before the two of the first.
      const activities = [activity(2, 12), activity(2, 10), activity(2, 11)];
      const ran = gpuKernels({ activities, queuedAtMs, droppedRecords: 0 }, branched);
      expect(ran.map(({ op }) => op)).toEqual([3, 1, 1]);
      expect(ran.map(({ stream }) => stream)).toEqual([
        'cuda:1 stream 13',
        'cuda:1 stream 13, branch',
        'cuda:1 stream 13, branch',
      ]);
    });

    it('must match their number, where no record was lost; otherwise have none', () => {
      expect(() => kernels([1, 2, 2])).toThrow(/the graph of step has 3 nodes, and CUPTI recorded 2 kernels/);
      expect(() => kernels([2, 2, 2, 2])).toThrow(/has 3 nodes, and CUPTI recorded 4/);
      expect(kernels([1, 2, 2], 1).map(({ op }) => op)).toEqual([0, null, null]);
    });
  });
});

describe('cpuKernels', () => {
  it('lasts as long as the call, from the beginning of the profile; calls on GPUs are left out', () => {
    const kernels = cpuKernels([call(12, 14), call(20, 23, 'cpu')], 10);
    expect(kernels).toEqual([
      {
        ...{ name: 'inJavaScript (JavaScript)', kind: 'kernel', startUs: 10_000, durationUs: 3000 },
        ...{ stream: 'cpu', op: 1, byteLength: null, grid: null, block: null },
      },
    ]);
  });

  it('do not exist for empty tensors', () => {
    const empty = { ...call(1, 2, 'cpu'), outputs: [{ shape: [0, 3], dtype: 'float32' as const }] };
    const one = { ...empty, outputs: [...empty.outputs, { shape: [1], dtype: 'float32' as const }] };
    expect(cpuKernels([empty], 0)).toEqual([]);
    expect(cpuKernels([one], 0)).toHaveLength(1);
  });
});

describe('OpRecorder', () => {
  const observe = (recorder: OpRecorder, device: { type: string }, failed = false) => {
    const x = { shape: [4], dtype: 'float64', strides: [2], offset: 3, storage: { byteLength: 100 }, device };
    const tensor = x as unknown as t.Tensor;
    recorder.before(inJavaScript as OpCall['op'], [tensor], [tensor, tensor], undefined);
    recorder.after(inJavaScript as OpCall['op'], failed);
  };

  it('records addresses of operands and what the device held, and forgets what failed', () => {
    const recorder = new OpRecorder();
    observe(recorder, { type: 'cpu', allocatedBytes: 1 } as never, true);
    observe(recorder, { type: 'cpu', label: 'cpu', allocatedBytes: 77 } as never);
    const [first, ...others] = recorder.calls();
    expect(others).toEqual([]);
    expect(first).toMatchObject({
      ...{ deviceType: 'cpu', deviceLabel: 'cpu', allocatedBytes: 77, range: null },
      inputs: [{ shape: [4], dtype: 'float64', strides: [2], offset: 3, storageSize: 12 }],
      outputs: [
        { shape: [4], dtype: 'float64' },
        { shape: [4], dtype: 'float64' },
      ],
    });
    expect(first!.endMs).toBeGreaterThanOrEqual(first!.startMs);
  });
});
