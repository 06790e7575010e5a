import { UsageError } from '../errors.ts';
import { remedies } from './diagnosis.ts';

/** Why ranks cannot be connected here as `roofline allreduce` chooses: null with Gloo, or with several GPUs. */
export async function whyNoRanks(): Promise<string | null> {
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  if (cudaDeviceCount() > 1) return null;
  const [problem] = await problemsOfGloo();
  return problem ?? null;
}

/** Before a sweep whose ranks the backend connects. Throws UsageError for Gloo that is missing, and NCCL without a GPU. */
export async function requireBackend(backend: 'gloo' | 'nccl'): Promise<void> {
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
