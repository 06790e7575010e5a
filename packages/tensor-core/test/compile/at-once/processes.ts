import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./compile-a-step.ts', import.meta.url));

/** The bits of what a process has computed; see compile-a-step.ts. */
export interface Trained {
  readonly compiled: string;
  readonly eager: string;
}

/** Makes several fresh processes compile the same step at once on `device`, each with `environment` besides this one's. */
export async function compileAtOnce(
  count: number,
  device: 'cpu' | 'emulated' | `cuda:${number}`,
  environment: Readonly<Record<string, string>>,
): Promise<Trained[]> {
  const children = Array.from({ length: count }, () =>
    spawn(
      process.execPath,
      ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', program, device],
      { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...environment } },
    ),
  );
  const outcomes = children.map(outcomeOf);
  // None begins before all are there.
  await Promise.all(children.map((child, i) => Promise.race([once(child.stdout, 'data'), outcomes[i]])));
  for (const child of children) child.stdin.write('go\n');
  return Promise.all(outcomes);
}

async function outcomeOf(child: ChildProcess): Promise<Trained> {
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close'),
  ]);
  if (exitCode !== 0) throw new Error(`a process ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout.split('\n')[1]!) as Trained;
}
