import { openDevice } from '../../device/prepare-device.ts';
import { findTorchPython } from '../find-python.ts';
import { runCellProcess } from '../../runner/cell-process.ts';
import { agreeResult, randomJob, type AgreeJob, type AgreeResult, type AgreeScale } from './agree-job.ts';

/** A random configuration by its name. */
export interface AgreeRequest {
  readonly seed: number;
  readonly scale: AgreeScale;
}

export interface Agreement {
  readonly job: AgreeJob;
  readonly result: AgreeResult;
}

/**
 * Checks each random configuration that is asked for. Throws UsageError without the device or PyTorch, and Error when
 * a side fails.
 */
export async function agreeOnDevice(
  deviceSpec: string,
  requests: readonly AgreeRequest[],
  onStatus: (text: string) => void,
): Promise<Agreement[]> {
  onStatus('Looking for PyTorch');
  const { executable } = await findTorchPython();
  process.env['ROOFLINE_PYTHON'] = executable;
  const device = await openDevice(deviceSpec);
  const agreements: Agreement[] = [];
  for (const { seed, scale } of requests) {
    onStatus(`Configuration of seed ${seed}, ${scale}`);
    const job = randomJob(seed, scale);
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
