import { diagnoseGloo } from '@roofline/collectives';
import { expect, it, vi } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import { lookAround } from '../../src/device/look-around.ts';
import { probeDevice } from '../../src/device/prepare-device.ts';
import { readSlowdowns } from '../../src/records/cpu-slowdowns.ts';
import { findPython } from '../../src/peer/find-python.ts';

vi.mock('@roofline/collectives');
vi.mock('../../src/device/prepare-device.ts');
vi.mock('../../src/peer/find-python.ts');
vi.mock('../../src/records/cpu-slowdowns.ts');

const cpu = { component: 'ONNX Runtime', status: 'found', detail: 'calculates on the CPU' } as const;
const gloo = { component: 'libgloo', status: 'found', detail: 'connects processes on CPUs' } as const;
const fails = () => {
  throw new TypeError('it broke');
};

it('makes a row of each finding that fails, next to those of the others', async () => {
  vi.mocked(probeDevice).mockResolvedValue({ device: null, problem: null, diagnosis: [cpu] });
  vi.mocked(diagnoseGloo).mockImplementation(fails);
  vi.mocked(findPython).mockImplementation(fails);
  vi.mocked(readSlowdowns).mockReturnValue(new Map([['count', 0]]));
  const { diagnosis, torch, jax } = await lookAround('cpu');
  expect(diagnosis).toEqual([
    ...[cpu, { component: 'libgloo', status: 'unusable', detail: 'it broke' }],
    { component: 'CPU slowdowns', status: 'found', detail: 'say when heat held the clocks of the CPU down' },
  ]);
  expect(torch).toEqual({ component: 'Python with PyTorch', status: 'unusable', detail: 'it broke' });
  expect(jax).toEqual({ component: 'Python with JAX', status: 'unusable', detail: 'it broke' });
});

it('reports a driver that does not answer, and the rest', async () => {
  vi.mocked(probeDevice).mockRejectedValue(new Error('cuda did not open within 120 s.'));
  vi.mocked(diagnoseGloo).mockReturnValue(gloo);
  vi.mocked(findPython).mockImplementation(async ([name]) => {
    if (name === 'jax') throw new UsageError('No Python with JAX was found.');
    return { executable: 'python3', versions: ['2.11.0'] };
  });
  vi.mocked(readSlowdowns).mockReturnValue(null);
  const { device, problem, diagnosis, torch, jax } = await lookAround('cuda');
  expect(device).toBeNull();
  expect(problem).toBe('cuda did not open within 120 s.');
  expect(diagnosis).toEqual([
    ...[{ component: 'devices', status: 'unusable', detail: problem }, gloo],
    expect.objectContaining({
      ...{ component: 'CPU slowdowns', status: 'missing' },
      remedy: expect.stringContaining('on Intel CPUs'),
    }),
  ]);
  expect(torch).toMatchObject({ status: 'found', version: '2.11.0', path: 'python3' });
  expect(jax).toEqual({
    ...{ component: 'Python with JAX', status: 'missing', detail: 'measures against JAX, by --peer jax' },
    remedy: 'No Python with JAX was found.',
  });
});
