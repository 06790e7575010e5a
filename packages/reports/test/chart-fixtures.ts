import type { Allocation, AllocationPlot, Slice, Timeline } from '../src/index.ts';

export function smallTimeline(changes: Partial<Timeline> = {}): Timeline {
  return {
    kind: 'timeline',
    id: 'step-timeline',
    title: 'One step',
    tracks: [
      {
        name: 'Ranges',
        slices: [
          { name: 'forward', startUs: 100, durationUs: 50 },
          { name: 'attention', startUs: 110, durationUs: 20 },
          { name: 'backward', startUs: 150, durationUs: 100 },
        ],
      },
      { name: 'Stream 7', slices: [{ name: 'gemm', startUs: 112, durationUs: 8, category: 'matmul' }] },
    ],
    counters: [
      {
        name: 'Allocated',
        unit: 'bytes',
        points: [
          [100, 1024],
          [200, 4096],
        ],
      },
    ],
    ...changes,
  };
}

/** Slices of long names side by side, as kernels are. */
export function longTimeline(count: number): Timeline {
  const slices: Slice[] = Array.from({ length: count }, (_, index) => ({
    name: `void kernel_${index % 50}<float, ${index % 50}, true>(float const*, float*, int)`,
    startUs: index * 10,
    durationUs: 7.123,
    category: ['matmul', 'softmax', 'pointwise'][index % 3]!,
  }));
  return smallTimeline({ tracks: [{ name: 'Stream 7', slices }] });
}

export function smallAllocations(changes: Partial<AllocationPlot> = {}): AllocationPlot {
  return {
    kind: 'allocations',
    id: 'step-memory',
    title: 'Memory of one step',
    allocations: [
      { label: 'weight', category: 'parameters', bytes: 1000, startUs: 0, endUs: null },
      {
        label: 'scores',
        category: 'activations',
        bytes: 500,
        startUs: 10,
        endUs: 20,
        stack: ['matmul', 'step'],
      },
      { label: 'scores', category: 'activations', bytes: 500, startUs: 20, endUs: 40 },
      { label: 'output', category: 'activations', bytes: 100, startUs: 30, endUs: 50 },
    ],
    reserved: [[0, 2048]],
    ...changes,
  };
}

export function manyAllocations(count: number): AllocationPlot {
  const allocations: Allocation[] = Array.from({ length: count }, (_, index) => ({
    label: `op ${index % 20}`,
    bytes: 2 ** (index % 20),
    startUs: index,
    endUs: index % 10 === 0 ? null : index + 200,
  }));
  return smallAllocations({ allocations });
}
