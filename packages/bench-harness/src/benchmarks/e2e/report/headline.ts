import type { Plot, Point } from '@roofline/reports';
import { cellNames } from '../../../report/cell-names.ts';
import { e2eDtypes, modes } from '../parameters.ts';
import type { E2eMeasurement, Measured } from './interpret.ts';

const titles = {
  forward: 'A forward pass',
  'forward-backward': 'Forward and backward',
  'train-step': 'A training step',
} as const;

/**
 * Median times by model: ours next to PyTorch's, or next to the floor where no peer ran. Null where nothing was
 * measured.
 */
export function headlinePlot(measurements: readonly E2eMeasurement[]): Plot | null {
  const measured = measurements.filter((each) => each.measured !== null);
  const mode = modes.findLast((name) => measured.some(({ cell }) => cell.mode === name));
  if (mode === undefined) return null;
  const told = measured.filter(({ cell }) => cell.mode === mode);
  const names = cellNames(
    told.map(({ cell }) => cell),
    ['size', 'context', 'batch', 'attention', 'execution', 'peerAttention', 'peerExecution'],
  );
  const hasPeer = told.some(({ measured }) => measured!.peer);
  const other = hasPeer
    ? { name: 'PyTorch', of: ({ peer }: Measured) => peer?.device.median ?? null }
    : { name: 'floor', of: ({ floorMs }: Measured) => floorMs };
  const dtypes = e2eDtypes.filter((dtype) => told.some(({ cell }) => cell.dtype === dtype));
  const series = dtypes.flatMap((dtype) =>
    [{ name: 'Roofline', of: ({ device }: Measured) => device.median }, other].map(({ name, of }) => ({
      name: dtypes.length > 1 ? `${name}, ${dtype}` : name,
      points: told
        .filter(({ cell }) => cell.dtype === dtype)
        .map(({ cell, measured }): Point => ({ x: names.name(cell), y: of(measured!) })),
    })),
  );
  const beside = hasPeer
    ? `beside PyTorch${versionOf(told)}`
    : 'and the least that the measured ceilings allow';
  const shared = [...(dtypes.length === 1 ? dtypes : []), ...(names.shared === '' ? [] : [names.shared])];
  return {
    kind: 'plot',
    id: 'at-a-glance',
    title: `${titles[mode]} ${beside}`,
    caption: `Medians of the device time${shared.length > 0 ? ` (${shared.join(', ')})` : ''}; lower is faster.`,
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: 'linear' },
    marks: 'bar',
    series: series.filter(({ points }) => points.some(({ y }) => y !== null)),
  };
}

/** ` 2.11.0`, or nothing where several ran. */
function versionOf(measurements: readonly E2eMeasurement[]): string {
  const versions = new Set(
    measurements.flatMap(({ measured }) => {
      const peer = measured!.result.peer;
      return peer?.status === 'ok' ? peer.torch.replace(/\+.*/, '') : [];
    }),
  );
  return versions.size === 1 ? ` ${[...versions][0]}` : '';
}
