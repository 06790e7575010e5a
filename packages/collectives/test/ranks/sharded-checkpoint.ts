import { deepStrictEqual, ok, rejects } from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Tensor, fromTypedArray, keep, noGrad } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import { TransformerLM, loadCheckpoint, loadSharded, saveSharded, saveWhole } from '@roofline/transformer';
import { type FullySharded, fullyShard } from '@roofline/collectives';
import { config, device, group, rank, size, valuesOf } from './sharded-training.ts';

// Saves and loads sharded checkpoints: `gloo save FOLDER`, `gloo load FOLDER`, and `gloo kill FOLDER PART`, in which a rank is killed
// while it saves. Gradients follow from the place of an element, so that any number of ranks makes the same steps.

const [, , , action, folder = ''] = process.argv;
const tied = { ...config, tieWordEmbeddings: true };
const checkpoint = join(folder, 'checkpoint');
const [whole, afterStep] = ['whole', 'after-step'].map((name) => join(folder, `${name}.safetensors`)) as [
  string,
  string,
];

const model = new TransformerLM(tied, { seed: action === 'save' ? 5 : 6, device });
const sharded = fullyShard(model, group);
const optimizer = new AdamW(sharded.parameters(), { learningRate: 0.01 });

function step(): void {
  for (const { start, leaf } of sharded.parts()) {
    const values = Float32Array.from({ length: leaf.size }, (_, i) => Math.sin(start + i));
    leaf.grad = noGrad(() => keep(fromTypedArray(values, [leaf.size], { device })));
  }
  optimizer.step();
  sharded.zeroGrad();
}

function valuesIn(path: string): Record<string, number[] | null> {
  const alone = new TransformerLM(tied, { device });
  loadCheckpoint(alone, path);
  const values = valuesOf(alone.namedParameters());
  alone.dispose();
  return values;
}

/** In the order of names, which is that of neither units nor files. */
const sortedOf = (values: Record<string, unknown>) =>
  Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1));
const expectValues = (path: string) =>
  deepStrictEqual(sortedOf(valuesOf(sharded.wholeParameters())), sortedOf(valuesIn(path)));

/** Dies as it comes to one of its parts, the last argument by number. */
function dying(it: FullySharded<TransformerLM>): FullySharded<TransformerLM> {
  const parts = function* () {
    const all = [...it.parts()];
    const place = Number(process.argv[5]) % all.length;
    yield* all.map((part, i) => (i === place ? { ...part, leaf: deadly } : part));
  };
  const deadly = { dtype: 'float32', shape: [1], toTypedArray: die } as unknown as Tensor;
  return new Proxy(it, {
    get: (target, key) => (key === 'parts' ? parts : Reflect.get(target, key, target)),
  });
}

function die(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('it is dead');
}

const versions = () => readdirSync(checkpoint).filter((name) => name.startsWith('version-'));

if (action === 'save') {
  step();
  step();
  await saveSharded(sharded, checkpoint, { optimizer, metadata: { step: '1' } });
  await saveSharded(sharded, checkpoint, { optimizer, metadata: { step: '2' } });
  deepStrictEqual(versions().length, 1);
  await saveWhole(sharded, whole, { step: '2' });
  step();
  await saveWhole(sharded, afterStep);
} else if (action === 'load') {
  deepStrictEqual(await loadSharded(sharded, checkpoint, { optimizer }), { step: '2' });
  expectValues(whole);
  step();
  expectValues(afterStep);
  const { format, step: saved } = await loadSharded(sharded, whole);
  deepStrictEqual([format, saved], ['pt', '2']);
  expectValues(whole);
  await rejects(loadSharded(sharded, join(folder, 'nowhere')), /holds no checkpoint of saveSharded/);
  const smaller = fullyShard(
    new TransformerLM({ ...tied, layers: 4, vocabularySize: 64 }, { device }),
    group,
  );
  const before = valuesOf(smaller.wholeParameters());
  await rejects(loadSharded(smaller, checkpoint), /does not fit the model: |failed on rank/);
  deepStrictEqual(valuesOf(smaller.wholeParameters()), before);
} else {
  ok(existsSync(checkpoint));
  const saving = saveSharded(rank === size - 1 ? dying(sharded) : sharded, checkpoint);
  await rejects(saving, /is gone|failed/);
}
console.log('all right');
