import { renderMarkdown } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import { precisionBenchmark } from '../../src/benchmarks/precision/benchmark.ts';
import { peerFailures } from '../../src/report/peer-failures.ts';
import { toyCell, toyRecord, toyResult } from '../fixtures/records.ts';

const failed = (message: string) => ({
  status: 'failed' as const,
  error: { name: 'PeerError', message },
});
const spent = (size: string) => ({
  status: 'out-of-memory' as const,
  error: {
    name: 'PeerError',
    message: `OutOfMemoryError in PyTorch: CUDA out of memory. Tried to allocate ${size}. See more.`,
  },
});
const tooOld = failed('RuntimeError in PyTorch: torch.compile needs PyTorch 2.\nTraceback');
const said =
  'PyTorch could not run small · context 16 · batch 2 · train-step · float32: RuntimeError in PyTorch: ' +
  'torch.compile needs PyTorch 2.';

describe('where PyTorch has no time', () => {
  it('says why, each reason once', () => {
    const cells = [
      { name: 'small', peer: tooOld },
      { name: 'small, context 32', peer: tooOld },
      { name: 'small', peer: failed('no memory') },
      { name: 'small', peer: null },
      ...[1, 20].map((batch) => ({ name: `batch ${batch}`, peer: spent(`${batch} GiB`) })),
    ];
    cells.push({ name: 'xl', peer: failed('No module named torch. Install it.') });
    const of = (title: string) => cells.map((cell) => ({ ...cell, title }));
    const [jax] = of('JAX');
    expect(peerFailures([...of('PyTorch'), jax!])).toEqual([
      'PyTorch could not run small; small, context 32: RuntimeError in PyTorch: torch.compile needs PyTorch 2.',
      'PyTorch could not run small: no memory.',
      'PyTorch could not run batch 1; batch 20: OutOfMemoryError in PyTorch: CUDA out of memory.',
      'PyTorch could not run xl: No module named torch. Install it.',
      'JAX could not run small: RuntimeError in PyTorch: torch.compile needs PyTorch 2.',
    ]);
  });

  it.each([
    ['e2e', e2eBenchmark, toyRecord({}, { result: { ...toyResult(), peer: tooOld } })],
    [
      'precision',
      precisionBenchmark,
      toyRecord(
        {},
        {
          benchmark: 'precision',
          parameters: { ...toyCell, study: 'speed' },
          result: { ...toyResult(), study: 'speed', peer: tooOld },
        },
      ),
    ],
  ])('the report of %s says so', (_, benchmark, record) => {
    expect(renderMarkdown(benchmark.toReport([record]))).toContain(`> ${said}`);
  });
});
