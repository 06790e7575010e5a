import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { shimPath } from '../../src/gloo/gloo-library.ts';
import { StoreServer } from '../../src/store/store-server.ts';

/** Whether `build:native` found Gloo. */
export const hasGloo = existsSync(shimPath());

/** For the names of suites, so that a skip says why. */
export const glooNote = hasGloo ? '' : ' (skipped: Gloo is not installed, see native/build.mjs)';

export interface RankResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningRank {
  readonly child: ChildProcess;
  readonly result: Promise<RankResult>;
  /** Resolves once the rank has printed `text`. */
  printed(text: string): Promise<void>;
}

/** A script of test/ranks. */
export function rankScript(name: string): string {
  return fileURLToPath(new URL(`../ranks/${name}.ts`, import.meta.url));
}

const fromSources = '--conditions=roofline-source';

/**
 * What Node runs scripts with. ROOFLINE_TEST_BUILT=1, as `npm test` sets it after a build: all packages are what was
 * built, which start in a third of the time.
 */
export const nodeFlags: readonly string[] = [
  ...(process.env['ROOFLINE_TEST_BUILT'] === '1' ? [] : [fromSources]),
  '--disable-warning=ExperimentalWarning',
];

/** What these give a group to is not exported: it and the group are from the sources both. */
const sourceScripts: readonly string[] = ['tensor-parallel'];

/**
 * Starts a script of test/ranks, without any store; `prefix` are words before the command, where it runs elsewhere, `flags`
 * are Node's next to its own.
 */
export function startScript(
  name: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  prefix: readonly string[] = [],
  flags: readonly string[] = [],
): RunningRank {
  const sources = sourceScripts.includes(name) ? [fromSources] : [];
  const node = [process.execPath, ...nodeFlags, ...sources, ...flags];
  const [program, ...words] = [...prefix, ...node, rankScript(name), ...args];
  const child = spawn(program!, words, {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]!.setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
      for (const watcher of watchers) watcher();
    });
  }
  const result = new Promise<RankResult>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  const printed = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (output.stdout.includes(text)) resolve();
      };
      watchers.add(look);
      look();
      void result.then(({ code, stderr }) =>
        reject(new Error(`the rank ended with ${code} before it printed "${text}": ${stderr}`)),
      );
    });
  return { child, result, printed };
}

/** Runs `use` while the ranks of a script run, with a store that this process hosts; ends them afterwards. */
export async function withRanks<T>(
  name: string,
  size: number,
  use: (ranks: readonly RunningRank[]) => Promise<T>,
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<T> {
  const server = await StoreServer.listen({ token: 'test' });
  const ranks = Array.from({ length: size }, (_, rank) =>
    startScript(name, args, {
      RANK: String(rank),
      WORLD_SIZE: String(size),
      LOCAL_RANK: String(rank),
      ROOFLINE_STORE: `127.0.0.1:${server.port}`,
      ROOFLINE_STORE_TOKEN: 'test',
      ...variables,
    }),
  );
  try {
    return await use(ranks);
  } finally {
    for (const { child } of ranks) child.kill('SIGKILL');
    server.close();
  }
}

/** The results of a script that ends by itself. */
export function runRanks(
  name: string,
  size: number,
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<RankResult[]> {
  return withRanks(name, size, (ranks) => Promise.all(ranks.map(({ result }) => result)), args, variables);
}
