import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { RooflineError } from '@roofline/tensor-core';
import { startTimer } from '../bounded-timer.ts';
import { type HostAndPort, formatHostAndPort } from '../ranks/host-and-port.ts';
import { StoreServer } from '../store/store-server.ts';
import { type LaunchOptions, checkLaunchOptions, checkScript, readRendezvous } from './launch-options.ts';
import { describeFailures, rootFailure } from './rank-failures.ts';
import { type RankFailure, RankProcess } from './rank-process.ts';

/** How the ranks ended. */
export interface LaunchResult {
  /** 0, or what the first rank that failed ended with: 128 and the number where a signal ended it. */
  readonly exitCode: number;
  /** The rank that failed first; null where all ended well. */
  readonly failure: RankFailure | null;
}

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const defaultGraceMs = 5000;
/** How long ranks may take to report the one that they lost before they are asked to end. */
const noticeMs = 1000;

/**
 * Starts the ranks of this machine and waits for them. They find each other through a store that this process hosts,
 * each sees one GPU of its own, and their output comes line by line, prefixed with the rank. Signals are passed on.
 * When one fails the others are ended, and all are killed, with what they have started, as soon as this process is gone,
 * whatever ended it. The errors that ranks ended with are written at the end, each once with the ranks that had it, and the
 * one of the rank that failed first last.
 */
export async function launch(options: LaunchOptions): Promise<LaunchResult> {
  checkLaunchOptions(options);
  const { write = writeToConsole, graceMs = defaultGraceMs } = options;
  const token = tokenOf(options);
  checkScript(options.script);
  const { server, place } = await hostStore(options, token);
  const ranks = Array.from(
    { length: options.processes },
    (_, localRank) => new RankProcess(commandOf(options, localRank, place, token), write),
  );
  const forward = (signal: (typeof forwarded)[number]) => ranks.forEach((rank) => rank.signal(signal));
  for (const signal of forwarded) process.on(signal, forward);
  try {
    const failures = await endTogether(ranks, graceMs);
    for (const line of describeFailures(failures, ranks.length)) write('stderr', line);
    const failure = rootFailure(failures);
    return { exitCode: failure ? exitCodeOf(failure) : 0, failure };
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
    server?.close();
  }
}

function tokenOf({ token, nodes = 1 }: LaunchOptions): string {
  const given = token ?? process.env.ROOFLINE_STORE_TOKEN ?? '';
  if (given !== '') return given;
  if (nodes === 1) return randomBytes(32).toString('hex');
  throw new RooflineError(
    'ARGUMENT',
    'launch: several nodes need a token that all know; set ROOFLINE_STORE_TOKEN to one secret on each.',
  );
}

async function hostStore(
  { nodeRank = 0, rendezvous }: LaunchOptions,
  token: string,
): Promise<{ server: StoreServer | null; place: HostAndPort }> {
  const place = rendezvous === undefined ? { host: '127.0.0.1', port: 0 } : readRendezvous(rendezvous);
  if (nodeRank > 0) return { server: null, place };
  const server = await StoreServer.listen({ ...place, token });
  return { server, place: { ...place, port: server.port } };
}

function commandOf(
  { processes, script, args = [], nodes = 1, nodeRank = 0 }: LaunchOptions,
  localRank: number,
  place: HostAndPort,
  token: string,
) {
  const rank = nodeRank * processes + localRank;
  const variables = {
    RANK: String(rank),
    WORLD_SIZE: String(nodes * processes),
    LOCAL_RANK: String(localRank),
    LOCAL_WORLD_SIZE: String(processes),
    ROOFLINE_STORE: formatHostAndPort(place),
    ROOFLINE_STORE_TOKEN: token,
    CUDA_VISIBLE_DEVICES: ownGpu(process.env.CUDA_VISIBLE_DEVICES, localRank),
  };
  return { rank, script, args, variables };
}

/** The GPU of a local rank among those that this process sees; none where there are fewer. */
function ownGpu(visible: string | undefined, localRank: number): string {
  if (visible === undefined) return String(localRank);
  return visible.split(',')[localRank]?.trim() ?? '';
}

/**
 * Waits for all; from the first failure on the others are asked to end, and killed if they do not. That is no failure of
 * theirs.
 */
async function endTogether(ranks: readonly RankProcess[], graceMs: number): Promise<RankFailure[]> {
  const failures: RankFailure[] = [];
  const running = new Set(ranks);
  let killer: NodeJS.Timeout | undefined;
  let isAsked = false;
  await Promise.all(
    ranks.map(async (rank) => {
      const failure = await rank.ended;
      running.delete(rank);
      if (!failure || (isAsked && failure.signal !== null)) return;
      failures.push(failure);
      if (killer) return;
      // Ranks that lost this one are given time to say so, and then are ended as well.
      killer = setTimeout(() => {
        isAsked = true;
        for (const other of running) other.signal('SIGTERM');
        killer = startTimer(() => running.forEach((other) => other.signal('SIGKILL')), graceMs);
      }, noticeMs);
    }),
  );
  clearTimeout(killer);
  return failures;
}

function exitCodeOf({ exitCode, signal }: RankFailure): number {
  return exitCode ?? 128 + constants.signals[signal as NodeJS.Signals];
}

function writeToConsole(stream: 'stdout' | 'stderr', line: string): void {
  process[stream].write(`${line}\n`);
}
