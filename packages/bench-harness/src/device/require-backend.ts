import { UsageError } from '../errors.ts';
import { remedies } from './diagnosis.ts';

export type RankBackend = 'gloo' | 'nccl';

/** What may connect ranks, which may be asked for by the device that they run on. */
export interface BackendChoice {
  readonly given: RankBackend | undefined;
  /** `auto`, `cpu` or `cuda`. */
  readonly device: string;
  /** The most that are started; null for as many as there are places. */
  readonly ranks: number | null;
}

/**
 * What connects ranks: nccl where each of several has a GPU of its own, else gloo. Throws a UsageError for a device that does
 * not go with the backend, or is a single GPU.
 */
export async function chooseBackend({ given, device, ranks }: BackendChoice): Promise<RankBackend> {
  if (device.startsWith('cuda:'))
    throw new UsageError(`--device ${device} is one GPU, and each rank has its own: take --device cuda.`);
  const asked = { cpu: 'gloo', cuda: 'nccl' }[device] as RankBackend | undefined;
  if (given !== undefined && asked !== undefined && asked !== given) {
    throw new UsageError(`--backend ${given} does not connect ranks of --device ${device}: leave out one.`);
  }
  if (given ?? asked) return (given ?? asked)!;
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  const gpus = cudaDeviceCount();
  return gpus > 1 && (ranks ?? gpus) <= gpus ? 'nccl' : 'gloo';
}

/** Before a sweep whose ranks the backend connects. Throws UsageError for Gloo that is missing, and NCCL without a GPU. */
export async function requireBackend(backend: RankBackend): Promise<void> {
  const problems = backend === 'gloo' ? await problemsOfGloo() : await problemsOfNccl();
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
}

async function problemsOfGloo(): Promise<string[]> {
  const { diagnoseGloo } = await import('@roofline/collectives');
  return remedies([diagnoseGloo()]);
}

async function problemsOfNccl(): Promise<string[]> {
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  if (cudaDeviceCount() > 0) return [];
  return [
    'nccl connects GPUs, and CUDA finds none here (`roofline doctor` says why); `--backend gloo` connects processes on the CPU.',
  ];
}
