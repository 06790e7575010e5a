import { openDevice } from '../device/prepare-device.ts';
import { findTorchPython } from '../peer/find-python.ts';
import { runCellProcess } from '../runner/cell-process.ts';
import { agreeResult, randomJob, type AgreeJob, type AgreeResult } from './agree-job.ts';

export interface Agreement {
  readonly job: AgreeJob;
  readonly result: AgreeResult;
}

/**
 * Checks one random configuration for each seed. Throws UsageError without the device or PyTorch, and Error when
 * a side fails.
 */
export async function agreeOnDevice(
  deviceSpec: string,
  seeds: readonly number[],
  onStatus: (text: string) => void,
): Promise<Agreement[]> {
  onStatus('Looking for PyTorch');
  const { executable } = await findTorchPython();
  process.env['ROOFLINE_PYTHON'] = executable;
  const device = await openDevice(deviceSpec);
  const agreements: Agreement[] = [];
  for (const seed of seeds) {
    onStatus(`Configuration of seed ${seed}`);
    const job = randomJob(seed);
    const outcome = await runCellProcess({
      task: 'agree',
      parameters: job,
      settings: {},
      deviceLabel: device!.label,
    });
    if (outcome.status === 'interrupted') break;
    if (outcome.status !== 'ok')
      throw new Error(`The configuration of seed ${seed} failed: ${outcome.error.message}`);
    agreements.push({ job, result: agreeResult.parse(outcome.result) });
  }
  return agreements;
}
