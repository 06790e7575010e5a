import { UsageError } from '../errors.ts';
import { remedies } from './diagnosis.ts';

/** Before a sweep whose ranks Gloo connects. Throws UsageError where it is missing, with how to get it. */
export async function requireGloo(): Promise<void> {
  const { diagnoseGloo } = await import('@roofline/collectives');
  const problems = remedies([diagnoseGloo()]);
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
}
