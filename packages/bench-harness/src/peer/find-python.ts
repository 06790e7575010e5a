import { execa } from 'execa';
import { UsageError } from '../errors.ts';
import { peerTitles, type PeerName } from './kinds.ts';

/** A Python interpreter, and the version of each peer that it can import. */
export interface PeerPython {
  readonly executable: string;
  readonly versions: readonly string[];
}

const CANDIDATES = ['python3', 'python', '/usr/bin/python3'];

/** What pip installs of each. */
const packages: Readonly<Record<PeerName, string>> = { torch: 'torch', jax: '"jax[cuda13]"' };

/**
 * The interpreter that ROOFLINE_PYTHON names, else the first of the usual ones with all of these peers. Throws UsageError
 * when there is none.
 */
export async function findPython(peers: readonly PeerName[]): Promise<PeerPython> {
  const named = process.env['ROOFLINE_PYTHON'];
  const candidates = named ? [named] : CANDIDATES;
  const versions = peers.map((name) => `${name}.__version__`).join(', ');
  const tried: string[] = [];
  for (const executable of candidates) {
    const { exitCode, stdout, shortMessage, stderr } = await execa(
      executable,
      ['-c', `import ${peers.join(', ')}; print(${versions})`],
      { reject: false, timeout: 120_000 },
    );
    // Above it is what a site's own start-up code prints.
    if (exitCode === 0) return { executable, versions: lastLine(stdout).split(' ') };
    tried.push(`${executable}: ${lastLine(stderr?.trim() || shortMessage!)}`);
  }
  throw new UsageError(
    `No Python with ${peers.map((name) => peerTitles[name]).join(' and ')} was found (${tried.join('; ')}). ` +
      `Set ROOFLINE_PYTHON to an interpreter that can \`import ${peers.join(', ')}\`, ` +
      `or install one, for example \`python3 -m pip install ${peers.map((name) => packages[name]).join(' ')}\`.`,
  );
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!;
}
