import { openDevice } from '../../device/prepare-device.ts';
import { findPeer } from '../peer-setting.ts';
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
  onStatus: (text: string, done?: number, total?: number) => void,
): Promise<Agreement[]> {
  onStatus('Looking for PyTorch');
  await findPeer();
  onStatus(`Opening the device ${deviceSpec}`);
  const device = await openDevice(deviceSpec);
  const agreements: Agreement[] = [];
  for (const [done, { seed, scale }] of requests.entries()) {
    onStatus('Configurations compared', done, requests.length);
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
