import { type Device, device as openDevice } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { measureE2e } from '../e2e/measure.ts';
import { peerPython } from '../../peer/cell-peer.ts';
import { runPythonProgram } from '../../peer/python-program.ts';
import { measureAccuracy } from './accuracy.ts';
import { accumulate } from './accumulation.ts';
import { lossCurve } from './loss-curve.ts';
import { normErrors } from './norms.ts';
import type { LowDType, PrecisionCell, PrecisionResult, PrecisionSettings, ToyDtypes } from './parameters.ts';
import { readToyDtypes } from './toy-model.ts';

/** Measures one cell of the study, in the cell's own process. */
export async function measurePrecision(
  cell: PrecisionCell,
  context: CellContext<PrecisionSettings>,
): Promise<PrecisionResult> {
  const device = openDevice(context.deviceLabel as `cuda:${number}`);
  const { seed, lossSteps, peer } = context.settings;
  switch (cell.study) {
    case 'accumulation': {
      const devices = device.type === 'cpu' ? [device] : [device, openDevice('cpu')];
      return { study: 'accumulation', sums: devices.flatMap(accumulate) };
    }
    case 'dtypes': {
      const torch = peer && (await torchDtypes(device, cell.dtype));
      return { study: 'dtypes', ours: readToyDtypes(device, cell.dtype), torch };
    }
    case 'norms':
      return { study: 'norms', errors: normErrors(device, cell.dtype, seed) };
    case 'accuracy':
      return measureAccuracy(cell, device, seed);
    case 'loss': {
      const report = (done: number) => context.progress(done, lossSteps, 'steps');
      return { study: 'loss', ...lossCurve(device, cell, lossSteps, report) };
    }
    case 'speed': {
      const { study, ...workload } = cell;
      return { study, ...(await measureE2e(workload, context)) };
    }
  }
}

/** PyTorch's lists of ops are others on the CPU, so there is nothing to compare with. */
async function torchDtypes(device: Device, dtype: LowDType): Promise<ToyDtypes | null> {
  if (device.type === 'cpu') return null;
  return JSON.parse(
    await runPythonProgram(peerPython(), 'torch_precision.py', ['dtypes', device.label, dtype]),
  ) as ToyDtypes;
}
