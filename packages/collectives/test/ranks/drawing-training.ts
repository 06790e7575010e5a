import { deepStrictEqual } from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AdamW } from '@roofline/optim';
import { Generator, type Tensor, dropout } from '@roofline/tensor-core';
import {
  TokenLoader,
  TransformerLM,
  byteTokens,
  fit,
  loadTraining,
  loadTrainingOnRanks,
  saveTrainingOnRanks,
} from '@roofline/transformer';
import { DistributedDataParallel, fullyShard } from '@roofline/collectives';
import { groupOf } from './group-of.ts';
import { smallModel } from './joined-batch.ts';

// A training with dropout, which each rank draws for itself: `gloo begin FOLDER` saves after two steps and makes two more, `gloo resume
// FOLDER` makes those again, to the last bit, on as many ranks; on others it looks at where the generators go on.

const [, , , action, folder = ''] = process.argv;
const { group, device } = await groupOf();
const { rank, size: ranks } = group;
const savedBy = 2;
const firstSeed = 11;
const tokens = byteTokens(
  'Each rank draws for itself, and goes on with what it would have drawn. '.repeat(3),
);

function partsOf(mode: 'ddp' | 'fsdp', generator: Generator) {
  const model = new TransformerLM({ ...smallModel, layers: 1 }, { seed: 3, device });
  const drop = (x: Tensor) => dropout(x, { p: 0.3, training: true, generator });
  model.layers[0]!.ffn.wrap((network, x) => drop(network(x) as Tensor));
  const data = new TokenLoader(tokens, { batch: 6, contextLength: 8, device, rank, ranks });
  const parallel = mode === 'ddp' ? new DistributedDataParallel(model, group) : fullyShard(model, group);
  const optimizer = new AdamW(('parameters' in parallel ? parallel : model).parameters());
  return { model, data, parallel, optimizer, generator };
}

function train({ model, data, parallel, optimizer }: ReturnType<typeof partsOf>, from: number): number[] {
  const options = { data, parallel, optimizer, from, steps: from + 2, compile: true };
  return [...fit(model, options)].map(({ loss }) => loss);
}

for (const mode of ['ddp', 'fsdp'] as const) {
  const path = join(folder, `drawing-${mode}.safetensors`);
  const madeFile = `${path}.${rank}.json`;
  const placeFile = `${path}.place.json`;
  const generator = new Generator(action === 'begin' ? firstSeed + rank : 99);
  const parts = partsOf(mode, generator);
  if (action === 'begin') {
    train(parts, 0);
    await saveTrainingOnRanks(path, parts, { step: 2 });
    if (rank === 0) writeFileSync(placeFile, JSON.stringify(generator.stateDict()));
    writeFileSync(madeFile, JSON.stringify({ losses: train(parts, 2), end: generator.stateDict() }));
    continue;
  }
  await loadTrainingOnRanks(path, parts);
  const { offset } = JSON.parse(readFileSync(placeFile, 'utf8')) as { offset: number };
  deepStrictEqual(offset > 0, true);
  deepStrictEqual(generator.stateDict(), { seed: firstSeed + rank, offset });
  if (ranks === savedBy) {
    const made = { losses: train(parts, 2), end: generator.stateDict() };
    deepStrictEqual(made, JSON.parse(readFileSync(madeFile, 'utf8')));
  }
  const alone = new Generator(99);
  const model = new TransformerLM({ ...smallModel, layers: 1 }, { device });
  loadTraining(path, { model, generator: alone });
  deepStrictEqual(alone.stateDict(), { seed: firstSeed, offset });
}
console.log('all right');
group.dispose();
