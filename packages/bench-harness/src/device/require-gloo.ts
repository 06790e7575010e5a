import { UsageError } from '../errors.ts';
import { remedies } from './diagnosis.ts';

/** Why ranks cannot be connected here as `roofline allreduce` chooses: null with Gloo, or with several GPUs. */
export async function whyNoRanks(): Promise<string | null> {
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  if (cudaDeviceCount() > 1) return null;
  const [problem] = await problemsOfGloo();
  return problem ?? null;
}

/** Before a sweep whose ranks Gloo connects. Throws UsageError where it is missing, with how to get it. */
export async function requireGloo(): Promise<void> {
  const problems = await problemsOfGloo();
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
}

async function problemsOfGloo(): Promise<string[]> {
  const { diagnoseGloo } = await import('@roofline/collectives');
  return remedies([diagnoseGloo()]);
}
