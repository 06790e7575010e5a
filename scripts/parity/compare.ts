// Loads the models that transformers_models.py made, and compares logits (of batches filled up at the left too), loss, gradients and
// greedy tokens, of each prompt alone and of all at once: compare.ts FOLDER DEVICE. Exits with 1 where an error against float64 is
// beyond its limit, twice PyTorch's own in most rows, or a token differs. Writes parity.json to FOLDER, and each model to FAMILY/ours,
// for `transformers` to open.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flashAttention } from '../../packages/flash-attn/src/index.ts';
import {
  type DType,
  type Tensor,
  fromTypedArray,
  noGrad,
  scope,
} from '../../packages/tensor-core/src/index.ts';
import {
  KeyValueCache,
  type TransformerLM,
  generate,
  generateBatch,
  languageModelLoss,
  loadPretrained,
  loadTensors,
  plainAttention,
  savePretrained,
} from '../../packages/transformer/src/index.ts';

/** `padded` are logits of a batch that is filled up at the left. */
const quantities = ['logits', 'loss', 'gradients', 'padded'] as const;
type Errors = Record<(typeof quantities)[number], number>;
interface Made {
  readonly about: object;
  readonly errors: Record<string, { readonly sdpa: Errors; readonly eager?: Errors }>;
  readonly greedy: readonly { readonly prompt: number[]; readonly tokens: number[] }[];
}

const dtypes = ['float64', 'float32', 'bfloat16'] as const satisfies DType[];
const attentions = { plain: plainAttention, flash: flashAttention };
/** Whose error ours is held against: that of the same kind of attention, if it has one in this dtype. */
const beside = { plain: 'eager', flash: 'sdpa' } as const;
const theirErrors = ({ errors }: Made, dtype: DType, kind: keyof typeof beside): Errors =>
  errors[dtype]![beside[kind]] ?? errors[dtype]!.sdpa;
/** Of a sum of a few roundings: a lucky loss of PyTorch's may have none. */
const roundings = { float32: 2 ** -21, bfloat16: 2 ** -8 };
/** How much smaller roundings are in float64 than in float32. */
const float64Share = 2 ** -29;

const [root = '', asked] = process.argv.slice(2);
const device = asked === 'cpu' ? 'cpu' : 'cuda';
const rows: object[] = [];
const failures: string[] = [];
const families = readdirSync(root).filter((name) => !name.endsWith('.json'));
if (families.length === 0)
  throw new Error(`${root} holds no models; transformers_models.py make ${root} ${device} makes them.`);
for (const family of families) compareFamily(family);
writeFileSync(join(root, 'parity.json'), JSON.stringify(rows, null, 2));
console.table(rows);
for (const failure of failures) console.error(`FAILED ${failure}`);
console.log(failures.length === 0 ? 'All within their limits.' : `${failures.length} failures.`);
process.exitCode = failures.length === 0 ? 0 : 1;

function compareFamily(family: string): void {
  const folder = join(root, family);
  const made = JSON.parse(readFileSync(join(folder, 'errors.json'), 'utf8')) as Made;
  const reference = loadTensors(join(folder, 'reference.safetensors')).tensors;
  for (const dtype of dtypes) {
    for (const kind of ['plain', 'flash'] as const) {
      const { model } = loadPretrained(folder, { device, dtype, attention: attentions[kind] });
      // Flash attention has no windows, and says so.
      if (kind === 'flash' && model.config.slidingWindow !== undefined) {
        model.dispose();
        continue;
      }
      if (dtype === 'float32') {
        compareGreedy(`${family}, ${kind}`, model, made);
        compareBatch(`${family}, ${kind}`, model, made);
      }
      if (dtype === 'float32' && kind === 'plain')
        savePretrained(model, join(folder, 'ours'), { from: folder });
      const ours = errorsOf(model, reference, folder);
      const theirs = theirErrors(made, dtype, kind);
      for (const what of quantities) {
        const limit = limitOf(made, dtype, kind, what);
        const row = { family, dtype, attention: kind, what, ours: ours[what], PyTorch: theirs[what], limit };
        rows.push(row);
        // So that NaN fails, and what is infinite where there is no limit.
        if (!(ours[what] < limit))
          failures.push(`${family}, ${dtype}, ${kind}: ${what} ${ours[what]} beyond ${limit}`);
      }
      model.dispose();
    }
  }
  for (const tensor of Object.values(reference)) tensor.dispose();
}

/**
 * What an error may be: twice PyTorch's. The reference is PyTorch's own float64 with exact rotary angles, so its float64 error is 0, or
 * that of rotary tables in float32, and a float64 row may also have twice the roundings of PyTorch's float32, each as much smaller as
 * float64's are. A loss in float64 has only to be finite: it is one number, in which the errors of such tables cancel by
 * chance, so that PyTorch's says nothing of what ours may be; the logits that it is made of are judged.
 */
function limitOf(
  made: Made,
  dtype: (typeof dtypes)[number],
  kind: keyof typeof attentions,
  what: (typeof quantities)[number],
): number {
  const errorIn = (of: DType) => theirErrors(made, of, kind)[what];
  const limit = 2 * errorIn(dtype);
  if (dtype === 'float64')
    return what === 'loss' ? Infinity : Math.max(limit, 2 * errorIn('float32') * float64Share);
  return what === 'loss' ? Math.max(limit, roundings[dtype]) : limit;
}

/** Token by token, after prompts of several lengths: with a cache, without, and compiled. */
function compareGreedy(what: string, model: TransformerLM, { greedy }: Made): void {
  for (const [way, options] of Object.entries({
    cache: {},
    whole: { useCache: false },
    compiled: { compile: true },
  })) {
    for (const { prompt, tokens } of greedy) {
      const ours = generate(model, prompt, { temperature: 0, maxNewTokens: tokens.length, ...options });
      if (ours.join() !== tokens.join())
        failures.push(
          `${what}, ${way}: greedy tokens after ${prompt.length}: ${ours.join()}, not ${tokens.join()}`,
        );
    }
  }
}

/** The same tokens of all prompts at once. */
function compareBatch(what: string, model: TransformerLM, { greedy }: Made): void {
  const maxNewTokens = greedy[0]!.tokens.length;
  for (const compile of [false, true]) {
    const prompts = greedy.map(({ prompt }) => prompt);
    const ours = generateBatch(model, prompts, { temperature: 0, maxNewTokens, compile });
    for (const [row, tokens] of ours.entries()) {
      if (tokens.join() === greedy[row]!.tokens.join()) continue;
      const way = compile ? 'compiled batch' : 'batch';
      failures.push(
        `${what}, ${way}: greedy tokens of row ${row}: ${tokens.join()}, not ${greedy[row]!.tokens.join()}`,
      );
    }
  }
}

/** Logits of the real tokens of a batch that is filled up at the left. */
function paddedLogits(model: TransformerLM, ids: readonly number[], lengths: readonly number[]): number[] {
  const longest = ids.length / lengths.length;
  const padding = lengths.map((length) => longest - length);
  const rows = lengths.flatMap((length, row) => [
    ...Array.from({ length: padding[row]! }, () => 0),
    ...ids.slice(row * longest, row * longest + length),
  ]);
  using cache = new KeyValueCache(longest, { padding });
  return noGrad(() =>
    scope(() => {
      const logits = model.forward(
        fromTypedArray(Int32Array.from(rows), [lengths.length, longest], { device }),
        cache,
      );
      const values = logits.toFlatArray();
      const vocabulary = logits.shape[2]!;
      return padding.flatMap((count, row) =>
        values.slice((row * longest + count) * vocabulary, (row + 1) * longest * vocabulary),
      );
    }),
  );
}

function errorsOf(model: TransformerLM, reference: Readonly<Record<string, Tensor>>, folder: string): Errors {
  const onDevice = (name: string) => reference[name]!.to(device);
  const [ids, targets] = [onDevice('ids'), onDevice('targets')];
  const lengths = reference['lengths']!.toFlatArray();
  const [logits, loss] = scope(() => {
    const all = noGrad(() => model.forward(ids));
    const [, longest, vocabulary] = all.shape as [number, number, number];
    const values = all.toFlatArray();
    const real = lengths.flatMap((length, row) =>
      values.slice(row * longest * vocabulary, (row * longest + length) * vocabulary),
    );
    const ours = languageModelLoss(model, ids, targets);
    ours.backward();
    return [real, [ours.item()]];
  });
  const padded = paddedLogits(model, ids.toFlatArray(), lengths);
  const gradients = gradientsOf(model, join(folder, 'gradients'));
  const names = Object.keys(reference).filter((name) => name.startsWith('gradients.'));
  const joined = names.map((name) => gradients[name.slice('gradients.'.length)]!);
  const [ours, theirs] = [joined, names.map((name) => reference[name]!)].map((tensors) =>
    tensors.flatMap((tensor) => tensor.toFlatArray()),
  );
  for (const tensor of [ids, targets, ...Object.values(gradients)]) tensor.dispose();
  return {
    logits: relativeError(logits, reference['logits']!.toFlatArray()),
    loss: relativeError(loss, reference['loss']!.toFlatArray()),
    gradients: relativeError(ours!, theirs!),
    padded: relativeError(padded, reference['logits']!.toFlatArray()),
  };
}

/** Gradients as `transformers` stores weights: they are put in the place of the parameters, and saved. */
function gradientsOf(model: TransformerLM, scratch: string): Readonly<Record<string, Tensor>> {
  const state = [...model.namedParameters()].map(([name, { grad }]) => [name, grad!.detach()] as const);
  model.loadStateDict(Object.fromEntries(state));
  savePretrained(model, scratch);
  return loadTensors(join(scratch, 'model.safetensors')).tensors;
}

/** ‖ours - theirs‖ / ‖theirs‖. */
function relativeError(ours: readonly number[], theirs: readonly number[]): number {
  if (ours.length !== theirs.length) throw new Error(`${ours.length} numbers, not ${theirs.length}.`);
  const squares = (valueAt: (i: number) => number) => theirs.reduce((sum, _, i) => sum + valueAt(i) ** 2, 0);
  return Math.sqrt(squares((i) => ours[i]! - theirs[i]!) / squares((i) => theirs[i]!));
}
