import type { Plot, Report, Row, Table } from '../src/index.ts';

/** Every special case at once: failed rows, missing values, markup of each target language. */
export const HOSTILE = 'a|b & c_d #1 $x$ 50% ~{y}^ \\n "q" <script>alert(1)</script> [z] *w* `v` --flag';

export function measurements(): Table {
  return {
    kind: 'table',
    id: 'steps',
    title: 'Steps & more',
    caption: 'Batch 4, 100% measured',
    columns: [
      { key: 'size', label: 'Size', kind: 'text', emphasis: 'strong' },
      { key: 'timeMs', label: 'Time', kind: 'duration', unit: 'ms', uncertaintyKey: 'timeStdMs' },
      { key: 'peakBytes', label: 'Peak memory', kind: 'bytes' },
      { key: 'ratio', label: 'Ours / PyTorch', kind: 'ratio' },
      { key: 'share', label: 'Share of the roof', kind: 'percent', emphasis: 'roof' },
    ],
    rows: [
      { size: 'small', timeMs: 12.3456, timeStdMs: 0.42, peakBytes: 3 * 2 ** 30, ratio: 0.58, share: 0.5 },
      { size: HOSTILE, timeMs: 1500, timeStdMs: 13, peakBytes: null, ratio: 1.021, share: 0.123 },
      {
        size: 'huge',
        timeMs: NaN,
        status: 'out-of-memory',
        error: 'asked 12 GiB, "2 GiB" are free\nat step 3',
      },
      { size: 'slow', timeMs: null, status: 'timeout', error: 'no result in 600 s' },
    ],
  };
}

export function throughput(changes: Partial<Plot> = {}): Plot {
  return {
    kind: 'plot',
    id: 'throughput',
    title: 'Throughput <by> context',
    x: { label: 'Context', unit: 'tokens', scale: 'log' },
    y: { label: 'Rate', unit: 'TFLOP/s', scale: 'linear' },
    marks: 'line',
    series: [
      {
        name: 'ours',
        points: [
          { x: 1024, y: 300, low: 290, high: 310 },
          { x: 8192, y: 450, low: 445, high: 455, note: 'warm' },
        ],
      },
      {
        name: 'theirs',
        points: [
          { x: 1024, y: 250 },
          { x: 8192, y: null, note: 'OOM' },
        ],
      },
    ],
    references: [{ label: 'ceiling', y: 800 }],
    ...changes,
  };
}

export function manyRows(count: number): Table {
  const rows: Row[] = Array.from({ length: count }, (_, index) => {
    const row: Row = { size: `size ${index % 7}`, step: index, status: 'ok', dtype: 'float32' };
    for (let column = 0; column < 8; column += 1) row[`m${column}`] = Math.sin(index * 8 + column) * 1000;
    return index % 1000 === 5 ? { size: 'size x', step: index, status: 'failed', error: 'no reason' } : row;
  });
  const measured = Array.from({ length: 8 }, (_, column) => ({
    key: `m${column}`,
    label: `Metric ${column}`,
    unit: 'ms',
    kind: 'number' as const,
  }));
  return {
    kind: 'table',
    id: 'many',
    title: 'Many rows',
    columns: [
      { key: 'size', label: 'Size', kind: 'text' },
      { key: 'dtype', label: 'Type', kind: 'text' },
      { key: 'step', label: 'Step', kind: 'number' },
      ...measured,
    ],
    rows,
  };
}

export function sampleReport(changes: Partial<Report> = {}): Report {
  return {
    title: 'Benchmark <one>',
    subtitle: 'On a `test` machine',
    createdAt: '2025-11-21T00:47:31.000Z',
    summary: ['It is **fast**.'],
    environment: [
      { label: 'GPU', value: 'NVIDIA H200 & friends' },
      { label: 'Seed', value: '0' },
    ],
    sections: [
      {
        id: 'first',
        title: 'First',
        text: ['See [the docs](https://example.org/a?b=1&c=2).'],
        blocks: [measurements()],
      },
      {
        id: 'second',
        title: 'Second',
        blocks: [throughput(), { kind: 'note', text: 'Wide spread', tone: 'warning' }],
      },
    ],
    ...changes,
  };
}
