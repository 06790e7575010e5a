import { deepStrictEqual, ok } from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AdamW, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import type { Tensor } from '@roofline/tensor-core';
import {
  TokenLoader,
  TransformerLM,
  byteTokens,
  fit,
  loadTraining,
  loadTrainingOnRanks,
  parameterGroups,
  saveTraining,
  saveTrainingOnRanks,
} from '@roofline/transformer';
import { DistributedDataParallel, ShardedOptimizer, fullyShard } from '@roofline/collectives';
import { groupOf } from './group-of.ts';
import { smallModel } from './joined-batch.ts';

// `fit` on ranks, which saves after two steps and makes two more: `gloo begin FOLDER`. `gloo resume FOLDER` goes on from those files,
// on any number of ranks, and from that of one process. Losses are the same to the last bit on as many ranks, else within rounding.

const [, , , action, folder = ''] = process.argv;
const { group, device } = await groupOf();
const { rank, size: ranks } = group;
const modes = ['ddp', 'zero1', 'fsdp'] as const;
type Mode = (typeof modes)[number] | 'alone';

const tokens = byteTokens('Ranks that train together make the steps of one. '.repeat(3));
const [saved, steps] = [2, 4];
const schedule = cosineSchedule({ maximum: 0.02, totalSteps: steps });

function partsOf(mode: Mode) {
  const model = new TransformerLM({ ...smallModel, layers: 2 }, { seed: 3, device });
  const shared = mode === 'alone' ? {} : { rank, ranks };
  const data = new TokenLoader(tokens, { batch: 16, contextLength: 8, device, ...shared });
  if (mode === 'fsdp') {
    const parallel = fullyShard(model, group);
    const optimizer = new AdamW(parameterGroups(model, { parts: parallel.parts() }));
    return { model, data, parallel, optimizer };
  }
  const groups = parameterGroups(model);
  if (mode === 'alone') return { model, data, optimizer: new AdamW(groups) };
  const parallel = new DistributedDataParallel(model, group);
  const optimizer = mode === 'ddp' ? new AdamW(groups) : new ShardedOptimizer(groups, AdamW, group);
  return { model, data, parallel, optimizer };
}

type Parts = ReturnType<typeof partsOf>;

/** The losses and norms of steps `from` to `until`. */
function train(mode: Mode, { model, ...parts }: Parts, from: number, until: number): number[] {
  const { parallel } = parts;
  const shards = parallel && 'ranks' in parallel ? { ranks: parallel.ranks } : {};
  const clip = (parameters: Iterable<Tensor>) => clipGradientNorm(parameters, 0.5, shards);
  const options = { ...parts, schedule, clip, accumulate: 2, compile: true };
  return [...fit(model, { ...options, from, steps: until })].flatMap(({ loss, gradientNorm }) => [
    loss,
    gradientNorm!,
  ]);
}

const fileOf = (mode: Mode) => join(folder, `${mode}.safetensors`);
const readLosses = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as number[];
const lossesFile = (mode: Mode) => `${fileOf(mode)}.${ranks}.json`;

function expectClose(actual: readonly number[], expected: readonly number[]): void {
  deepStrictEqual(actual.length, expected.length);
  for (const [i, value] of actual.entries()) {
    const difference = Math.abs(value - expected[i]!);
    ok(difference <= 2e-5 * Math.abs(expected[i]!), `${actual.join()} against ${expected.join()}`);
  }
}

async function begin(mode: (typeof modes)[number], first: readonly number[]): Promise<void> {
  const parts = partsOf(mode);
  const { parallel } = parts;
  expectClose(train(mode, parts, 0, saved), first);
  await saveTrainingOnRanks(fileOf(mode), { ...parts, parallel: parallel! }, { step: saved });
  const losses = train(mode, parts, saved, steps);
  if (rank === 0) writeFileSync(lossesFile(mode), JSON.stringify(losses));
}

async function resume(mode: (typeof modes)[number], from: Mode, expected: readonly number[]): Promise<void> {
  const parts = partsOf(mode);
  const { parallel } = parts;
  const { step } = await loadTrainingOnRanks(fileOf(from), { ...parts, parallel: parallel! });
  deepStrictEqual(step, saved);
  const losses = train(mode, parts, step, steps);
  expectClose(losses, expected);
  if (from === mode && existsSync(lossesFile(mode))) deepStrictEqual(losses, readLosses(lossesFile(mode)));
}

/**
 * Frozen parameters have no moments, whether the optimizer has them or not: one process goes on from the file of the ranks, and they
 * from its own.
 */
async function goOnFrozen(isOptimized: boolean): Promise<void> {
  const freeze = (model: TransformerLM) => {
    const frozen = [model.tokenEmbeddings.weight, model.lnFinal.weight];
    for (const weight of frozen) weight.requiresGrad_(false);
    return frozen;
  };
  const optimizerOf = (parameters: Iterable<Tensor>) =>
    new AdamW([...parameters].filter(({ requiresGrad }) => isOptimized || requiresGrad));
  const make = (mode: 'alone' | 'fsdp') => {
    const model = new TransformerLM({ ...smallModel, layers: 1 }, { seed: 3, device });
    freeze(model);
    const shared = mode === 'alone' ? {} : { rank, ranks };
    const data = new TokenLoader(tokens, { batch: 4, contextLength: 8, device, ...shared });
    const parallel = mode === 'alone' ? undefined : fullyShard(model, group);
    const optimizer = optimizerOf((parallel ?? model).parameters());
    return { model, data, optimizer, ...(parallel && { parallel }) };
  };
  const steps = ({ model, ...parts }: ReturnType<typeof make>, from: number) =>
    [...fit(model, { ...parts, from, steps: from + 1 })].map(({ loss }) => loss);
  const path = join(folder, `frozen-${isOptimized}.safetensors`);
  const [sharded, alone] = [make('fsdp'), make('alone')];
  for (const parts of [sharded, alone]) steps(parts, 0);
  await saveTrainingOnRanks(path, { ...sharded, parallel: sharded.parallel! }, { step: 1 });
  const one = make('alone');
  deepStrictEqual(loadTraining(path, one).step, 1);
  if (rank === 0) saveTraining(`${path}.alone`, alone, { step: 1 });
  await group.allGatherObject(null);
  const again = make('fsdp');
  await loadTrainingOnRanks(`${path}.alone`, { ...again, parallel: again.parallel! });
  const expected = steps(alone, 1);
  for (const parts of [sharded, one, again]) expectClose(steps(parts, 1), expected);
}

const alone = partsOf('alone');
if (action === 'begin') {
  const first = train('alone', alone, 0, saved);
  if (rank === 0) {
    saveTraining(fileOf('alone'), alone as never, { step: saved });
    writeFileSync(join(folder, 'alone.json'), JSON.stringify(train('alone', alone, saved, steps)));
  }
  for (const mode of modes) await begin(mode, first);
  for (const isOptimized of [false, true]) await goOnFrozen(isOptimized);
} else {
  const expected = readLosses(join(folder, 'alone.json'));
  for (const mode of modes) await resume(mode, mode, expected);
  // Any mode goes on from what another wrote, and one process from all.
  await resume('fsdp', 'alone', expected);
  await resume('zero1', 'fsdp', expected);
  const one = partsOf('alone');
  loadTraining(fileOf('fsdp'), one as never);
  expectClose(train('alone', one, saved, steps), expected);
}
console.log('all right');
group.dispose();
