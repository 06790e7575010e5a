import { deepStrictEqual, rejects } from 'node:assert/strict';
import { join } from 'node:path';
import { keep, mul, noGrad } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import {
  type ModelConfig,
  type ShardedParameters,
  TransformerLM,
  loadCheckpoint,
  loadSharded,
  saveSharded,
  saveWhole,
} from '@roofline/transformer';
import { Mesh, fullyShard, parallelize } from '@roofline/collectives';
import { config, device, gpt2, group, size, valuesOf } from './tensor-parallel-training.ts';

// Saves and loads checkpoints of divided layers: `gloo save LAYOUT FOLDER`, `gloo load LAYOUT FOLDER`, where the layout is `tensor`,
// `shard`, `both`, or `three` with two replicas. Gradients follow from the values, so that all layouts make the same steps to the last bit.

const [, , , action, layout, folder = ''] = process.argv;
// Of two tensor ranks each has the only head of keys.
const given: ModelConfig = { ...config, ...gpt2, keyValueHeads: 1 };
const checkpoint = join(folder, 'checkpoint');
const [whole, afterStep] = ['whole', 'after-step'].map((name) => join(folder, `${name}.safetensors`)) as [
  string,
  string,
];

const model = new TransformerLM(given, { seed: action === 'save' ? 5 : 6, device });
const axes: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  both: { shard: size / 2, tensor: 2 },
  three: { replicate: 2, shard: size / 4, tensor: 2 },
};
const mesh = axes[layout!] ? await Mesh.create(group, axes[layout!]!) : null;
const divided = layout === 'shard' ? null : parallelize(model, mesh ?? group);
const sharded = layout === 'tensor' ? null : fullyShard(model, mesh ?? group);
const trained = (
  divided && sharded ? divided.with(sharded) : (divided ?? sharded!)
) satisfies ShardedParameters;
const optimizer = new AdamW(trained.parameters(), { learningRate: 0.01 });

function step(): void {
  for (const { leaf } of trained.parts()) leaf.grad = noGrad(() => keep(mul(leaf, 0.5)));
  optimizer.step();
  optimizer.zeroGrad();
}

const inOrder = (values: Record<string, unknown>) =>
  Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1));

function expectValues(path: string): void {
  const alone = new TransformerLM(given, { device });
  loadCheckpoint(alone, path);
  deepStrictEqual(inOrder(valuesOf(trained.wholeParameters())), inOrder(valuesOf(alone.namedParameters())));
  alone.dispose();
}

if (action === 'save') {
  step();
  step();
  await saveSharded(trained, checkpoint, { optimizer, metadata: { step: '2' } });
  await saveWhole(trained, whole);
  step();
  await saveWhole(trained, afterStep);
  expectValues(afterStep);
} else {
  deepStrictEqual(await loadSharded(trained, checkpoint, { optimizer }), { step: '2' });
  expectValues(whole);
  step();
  expectValues(afterStep);
  await loadSharded(trained, whole);
  expectValues(whole);
  await rejects(
    loadSharded(trained, join(folder, 'nowhere')),
    /holds no checkpoint of saveSharded|failed on rank/,
  );
}
console.log('all right');
