import { launch } from '@roofline/collectives';
import { ddpRankProgram } from '../../paths.ts';
import { freePort } from '../../peer/free-port.ts';
import { rankError } from '../../runner/rank-error.ts';
import { readRankEvent } from '../../runner/rank-lines.ts';
import { threadsOfRank } from '../../runner/threads-of-rank.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import type { DdpCell, DdpSettings } from './parameters.ts';
import type { RankEvent } from './rank-event.ts';
import { type DdpResult, type RankResult, rankResult } from './result.ts';
import type { RankJob } from './run-rank.ts';

/** Starts the ranks of one cell, and joins what they report. */
export async function measureDdp(
  cell: DdpCell,
  { settings, progress }: CellContext<DdpSettings>,
): Promise<DdpResult> {
  const peerPort = settings.peer ? await freePort() : 0;
  const job: RankJob = {
    cell,
    settings,
    peerPort,
    threads: settings.backend === 'gloo' ? threadsOfRank(cell.worldSize) : null,
  };
  // The ranks inherit it.
  if (job.threads !== null) process.env['ROOFLINE_CPU_THREADS'] = String(job.threads);
  const results: RankResult[] = [];
  const { failure } = await launch({
    processes: cell.worldSize,
    script: ddpRankProgram,
    args: [JSON.stringify(job)],
    write(stream, line) {
      const event = readRankEvent<RankEvent>(line);
      if (event?.type === 'progress') progress(event.done, event.total, event.name);
      else if (event) results.push(rankResult.parse(event.result));
      // What ranks print on stderr goes into the error of the one that failed.
      else if (stream === 'stdout') process.stderr.write(`${line}\n`);
    },
  });
  if (failure) throw rankError(failure);
  return joinRanks(results.sort((a, b) => a.rank - b.rank));
}

/** PyTorch's steps as its slowest rank has them; a failure of one is that of all. */
function joinPeers(peers: readonly RankResult['peer'][]): RankResult['peer'] {
  const [first] = peers;
  const failed = peers.find((peer) => peer?.status === 'failed');
  if (failed || first?.status !== 'ok') return failed ?? null;
  const samples = peers.map((peer) => (peer as typeof first).stepMs);
  const peaks = peers.flatMap((peer) => (peer as typeof first).peakBytes ?? []);
  return {
    ...first,
    stepMs: first.stepMs.map((_, step) => Math.max(...samples.map((each) => each[step]!))),
    peakBytes: peaks.length === 0 ? null : Math.max(...peaks),
  };
}

/** Each step takes as long as on its slowest rank. */
export function joinRanks(results: readonly RankResult[]): DdpResult {
  const { bucketBytes, copiedBytes, parameterCount, threads, times } = results[0]!;
  const slowest = Object.entries(times).map(([name, samples]) => {
    const ofRanks = results.map((result) => result.times[name as keyof typeof times]);
    return [name, samples && samples.map((_, step) => Math.max(...ofRanks.map((each) => each![step]!)))];
  });
  return {
    times: Object.fromEntries(slowest) as DdpResult['times'],
    memory: results.map(({ rank, memory }) => ({ rank, ...memory })),
    bucketBytes,
    copiedBytes,
    parameterCount,
    profiledPasses: results.map(({ profiledPass }) => profiledPass),
    threads,
    coldStartMs: Math.max(...results.map(({ coldStartMs }) => coldStartMs)),
    peer: joinPeers(results.map(({ peer }) => peer)),
  };
}
