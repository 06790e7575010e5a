import { execa } from 'execa';
import { UsageError } from '../errors.ts';

/** A Python interpreter that can import torch. */
export interface TorchPython {
  readonly executable: string;
  readonly torchVersion: string;
}

const CANDIDATES = ['python3', 'python', '/usr/bin/python3'];

/**
 * The interpreter that ROOFLINE_PYTHON names, else the first of the usual ones with PyTorch. Throws UsageError
 * when there is none.
 */
export async function findTorchPython(): Promise<TorchPython> {
  const named = process.env['ROOFLINE_PYTHON'];
  const candidates = named ? [named] : CANDIDATES;
  const tried: string[] = [];
  for (const executable of candidates) {
    const { exitCode, stdout, shortMessage, stderr } = await execa(
      executable,
      ['-c', 'import torch; print(torch.__version__)'],
      { reject: false, timeout: 120_000 },
    );
    // Above it is what a site's own start-up code prints.
    if (exitCode === 0) return { executable, torchVersion: lastLine(stdout) };
    tried.push(`${executable}: ${lastLine(stderr?.trim() || shortMessage!)}`);
  }
  throw new UsageError(
    `No Python with PyTorch was found (${tried.join('; ')}). ` +
      'Set ROOFLINE_PYTHON to an interpreter that can `import torch`, ' +
      'or install one, for example `python3 -m pip install torch`.',
  );
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!;
}
