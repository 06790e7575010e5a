import { describe, expect, it } from 'vitest';
import { compiledTables } from '../../../src/benchmarks/profile/report/compiled-table.ts';
import { profiledOf } from '../../../src/benchmarks/profile/interpret.ts';
import { profileBenchmark } from '../../../src/benchmarks/profile/benchmark.ts';
import { profileSummary } from '../../../src/benchmarks/profile/report/summary.ts';
import { stepTables } from '../../../src/benchmarks/profile/report/step-times.ts';
import { toyEnvironment } from '../../fixtures/environment.ts';
import { interpretProfile, toyProfileResult } from '../../fixtures/profiles.ts';
import { toyRecord } from '../../fixtures/records.ts';

const settings = { warmup: 1, steps: 2, seed: 0, phase: 'all', range: null, peer: null };
const onGpu = {
  ...toyEnvironment,
  device: { ...toyEnvironment.device, label: 'cuda:0', type: 'cuda' as const },
};

describe('profiles of compiled steps', () => {
  const [step] = toyProfileResult.steps;
  const { kernels } = step!;
  // The same without its first and its last kernel.
  const fewer = Object.fromEntries(
    Object.entries(kernels).map(([key, list]) => [key, list.slice(1, -1)]),
  ) as unknown as typeof kernels;
  const compiledResult = {
    ...toyProfileResult,
    steps: toyProfileResult.steps.map((each) => ({ ...each, kernels: fewer })),
    compilation: { calls: 3, durationMs: 150 },
  };
  const recordsOn = (environment: typeof toyEnvironment) => [
    toyRecord({}, { benchmark: 'profile', settings, environment, result: toyProfileResult }),
    toyRecord(
      { execution: 'compiled' },
      { benchmark: 'profile', settings, environment, result: compiledResult },
    ),
  ];

  it('are compared with eager ones: kernels, their time, what is idle', () => {
    const [table] = compiledTables(recordsOn(onGpu).map(interpretProfile));
    expect(table!.rows).toEqual([
      {
        ...{
          cell: 'small',
          status: 'ok',
          eagerKernels: 5,
          compiledKernels: 3,
          eagerMs: 0.039,
          compiledMs: 0.036,
        },
        ...{ eagerIdle: expect.any(Number), compiledIdle: expect.any(Number), compileMs: 150 },
        ratio: 0.036 / 0.039,
      },
    ]);
    const { eagerIdle, compiledIdle } = table!.rows[0]!;
    expect(compiledIdle).toBeGreaterThan(Number(eagerIdle));
    expect(JSON.stringify(profileBenchmark.toReport(recordsOn(onGpu)))).toContain('compiled-beside-eager');
    expect(compiledTables(recordsOn(onGpu).slice(0, 1).map(interpretProfile))).toEqual([]);
    expect(compiledTables(recordsOn(onGpu).slice(1).map(interpretProfile))).toEqual([]);
    const autotuned = toyRecord(
      { execution: 'autotuned' },
      { benchmark: 'profile', settings, environment: onGpu, result: compiledResult },
    );
    const [both] = compiledTables([...recordsOn(onGpu), autotuned].map(interpretProfile));
    expect(both!.rows.map(({ cell }) => cell)).toEqual(['small, compiled', 'small, autotuned']);
  });

  it('are of ops one by one on the CPU, which the report says', () => {
    const measurements = recordsOn(toyEnvironment).map(interpretProfile);
    expect(measurements.map((each) => profiledOf(each)!.isOpByOp)).toEqual([false, true]);
    expect(compiledTables(measurements)).toEqual([]);
    expect(JSON.stringify(profileBenchmark.toReport(recordsOn(toyEnvironment)))).toContain('ran one by one');
  });

  it('say nothing of plain steps on the CPU, since only those ran as a program', () => {
    const measurements = recordsOn(toyEnvironment).map(interpretProfile);
    const [eager, compiled] = stepTables(measurements)[0]!.rows;
    expect(compiled).toMatchObject({ idleShare: null, overhead: null, plainMs: eager!['plainMs'] });
    expect(eager).toMatchObject({ idleShare: expect.any(Number), overhead: expect.any(Number) });
    const idle = (some: typeof measurements) => profileSummary(some).filter((text) => text.includes('idles'));
    expect(idle(measurements)).toEqual([
      expect.stringMatching(/^Kernels run for .* of a step of .* \(small, eager\); /),
    ]);
    expect(idle(measurements.slice(1))).toEqual([]);
    expect(idle(recordsOn(onGpu).map(interpretProfile))).toEqual([
      expect.stringMatching(/small, eager to .* for small, compiled\.$/),
    ]);
  });
});
