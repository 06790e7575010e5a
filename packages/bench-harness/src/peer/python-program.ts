import { ExecaError, execa } from 'execa';
import { join } from 'node:path';
import { pythonDirectory } from '../paths.ts';
import { PeerError } from './python-peer.ts';

/**
 * What a program of python/ prints that runs once and ends. Throws a PeerError with the error that ended it, all of its
 * traceback after the first line.
 */
export async function runPythonProgram(
  python: string,
  program: string,
  args: readonly string[],
): Promise<string> {
  const env = { OMP_NUM_THREADS: process.env['OMP_NUM_THREADS'] ?? '2' };
  try {
    return (await execa(python, ['-B', join(pythonDirectory, program), ...args], { env })).stdout;
  } catch (error) {
    if (error instanceof ExecaError) throw new PeerError(whatPythonSaid(error, program));
    throw error;
  }
}

/** Python names the error after the last indented line of its traceback. */
function whatPythonSaid({ stderr, shortMessage }: ExecaError, program: string): string {
  const said = String(stderr ?? '').trimEnd();
  const [, last] = /^Traceback [\s\S]*\n[ \t].*\n([\w.]+(?:: [\s\S]*)?)$/m.exec(said) ?? [];
  if (last === undefined) return said === '' ? shortMessage : `${shortMessage}\n${said}`;
  const [name, ...message] = last.split(': ');
  return `${name} in PyTorch: ${message.join(': ')}\nat ${program}:\n${said}`;
}
