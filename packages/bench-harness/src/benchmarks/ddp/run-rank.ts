import { initProcessGroup } from '@roofline/collectives';
import { device as openDevice } from '@roofline/tensor-core';
import { samplesOf, stepRunner } from '../../measuring/step-runner.ts';
import { alternationBlocks } from '../../measuring/timing.ts';
import { sendRankEvent } from '../../runner/rank-lines.ts';
import { RankPeer, timeoutBesidePeerMs } from './ddp-peer.ts';
import { contextModelOf } from './context-model.ts';
import { dividedModelOf } from './divided-model.ts';
import { type DdpCell, type DdpSettings, contextRanksOf, isSharded, tensorRanksOf } from './parameters.ts';
import type { RankEvent } from './rank-event.ts';
import { rankModelOf } from './rank-model.ts';
import { RankTraining, type StepSample } from './rank-training.ts';
import type { RankResult } from './result.ts';

/** What a rank is to measure. */
export interface RankJob {
  readonly cell: DdpCell;
  readonly settings: DdpSettings;
  /** Of its CPU device; null on a GPU. */
  readonly threads: number | null;
  /** Where the peer's ranks meet; 0 without a peer. */
  readonly peerPort: number;
}

/** Measures one rank's side of a cell. */
export async function runRank({ cell, settings, threads, peerPort }: RankJob): Promise<void> {
  // The rank's environment shows it one GPU.
  const device = openDevice(settings.backend === 'nccl' ? 'cuda' : 'cpu');
  const group = await initProcessGroup({
    backend: settings.backend,
    ...(settings.peer && { timeoutMs: timeoutBesidePeerMs }),
  });
  const { rank } = group;
  const trained = await modelOf(cell)(cell, settings, device, group);
  const training = new RankTraining(trained, cell, settings, device, group);
  const { memory, coldStartMs } = training.firstSteps();
  const { warmup, steps } = settings;
  const report = (done: number, total: number, name = '') => {
    if (rank === 0) sendRankEvent<RankEvent>({ type: 'progress', done, total, name });
  };
  const runSteps = stepRunner(report, { warmup, steps });
  const run = (count: number) => runSteps(count, () => training.sample());
  await run(warmup);
  const place = { rank, port: peerPort, threads: threads ?? 1 };
  // Models whose parameters are sharded are too large for two of them on a GPU.
  const isApart = isSharded(cell.mode);
  const startPeer = () => RankPeer.start(cell, settings, place);
  const beside = settings.peer && !isApart ? await startPeer() : null;
  const samples: StepSample[] = [];
  for (const count of alternationBlocks(steps)) {
    samples.push(...(await run(count)));
    await beside?.run(count);
  }
  const { bucketBytes, copiedBytes, parameterCount } = training;
  const profiledPass = await training.profile();
  training.dispose();
  const alone = settings.peer && isApart ? await startPeer() : null;
  for (const count of alternationBlocks(steps)) await alone?.run(count);
  const peer = (await (beside ?? alone)?.finish()) ?? null;
  const result: RankResult = {
    ...{ rank, times: training.timesOf(samplesOf(samples)), memory },
    ...{ bucketBytes, copiedBytes, parameterCount, threads, coldStartMs, profiledPass },
    peer: peer?.status === 'ok' ? { ...peer, isApart } : peer,
  };
  sendRankEvent<RankEvent>({ type: 'result', result });
  group.dispose();
}

/** What makes the model of a cell. */
export function modelOf(cell: DdpCell): typeof rankModelOf | typeof contextModelOf {
  if (contextRanksOf(cell) > 1) return contextModelOf;
  return tensorRanksOf(cell) > 1 ? dividedModelOf : rankModelOf;
}
