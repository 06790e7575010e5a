// Trains by `roofline train` and by PyTorch (train_torch.py) from the same weights on the same windows in the same order, with two seeds:
// training.ts FOLDER --data TEXT [flags of `roofline train`]. Prints how far the losses of the two are from each other, beside how far two
// seeds are, and tokens a second; writes curves.json, and exits with 1 where PyTorch's curve is farther from ours than another seed's.
// In a bundle it runs where scripts/ is copied to, by `bin/node --conditions=roofline-source scripts/parity/training.ts ...`.
// On the CPU PyTorch runs eagerly with plain attention; with `--device cuda` compiled, with its own attention and its fused AdamW.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Tensor, scope } from '../../packages/tensor-core/src/index.ts';
import { TokenLoader, type TokenLoaderOptions } from '../../packages/transformer/src/index.ts';
import { findCheckpoint } from '../../packages/bench-harness/src/train/run-folder.ts';
import type { TrainSettings } from '../../packages/bench-harness/src/train/settings.ts';
import { openTokens } from '../../packages/bench-harness/src/train/token-data.ts';
import { isStep, readTrainLog } from '../../packages/bench-harness/src/train/train-log.ts';

const seeds = [0, 1] as const;
/** Steps whose mean makes a point of a curve. */
const smoothed = 10;

interface Curve {
  readonly losses: readonly number[];
  readonly validationLoss: number;
  readonly stepMs: readonly number[];
}

const [folder, ...flags] = process.argv.slice(2);
if (folder === undefined || !flags.includes('--data'))
  throw new Error('training.ts FOLDER --data TEXT, and flags of `roofline train` if others are wanted.');
mkdirSync(folder, { recursive: true });
const isCuda = flags[flags.indexOf('--device') + 1]?.startsWith('cuda') ?? false;

const ours: Curve[] = [];
const theirs: Curve[] = [];
let settings: TrainSettings;
for (const seed of seeds) {
  ({ settings } = trainOurs(seed));
  theirs.push(trainTheirs(seed, settings));
}
report();

/** The flags of a checkout's command, from its sources. */
function trainOurs(seed: number): { settings: TrainSettings } {
  const out = join(folder!, `ours-${seed}`);
  rmSync(out, { recursive: true, force: true });
  const program = fileURLToPath(new URL('../../packages/bench-harness/src/cli.ts', import.meta.url));
  const node = ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', program];
  // The weights that it begins with, and the last, are the two that are kept.
  const words = [
    '--out',
    out,
    '--seed',
    String(seed),
    '--save-every',
    '0',
    '--eval-every',
    '0',
    '--keep',
    '2',
  ];
  execFileSync(process.execPath, [...node, 'train', ...flags, ...words], { stdio: 'inherit' });
  const lines = readTrainLog(out);
  const steps = lines.filter(isStep);
  const last = lines.findLast((line) => !isStep(line));
  ours.push({
    losses: steps.map(({ loss }) => loss!),
    validationLoss: (last as { validationLoss: number }).validationLoss,
    stepMs: steps.map(({ durationMs }) => durationMs),
  });
  return findCheckpoint(out);
}

function trainTheirs(seed: number, run: TrainSettings): Curve {
  if (run.accumulate !== 1 || run.validation === 0)
    throw new Error(
      'PyTorch has each step in one part, and a validation split: leave out --accumulate and --validation 0.',
    );
  const out = join(folder!, `ours-${seed}`);
  const windows = join(folder!, `windows-${seed}.bin`);
  writeWindows(windows, run);
  const job = {
    ...{ config: run.model.shape, context: run.context, batch: run.batch, dtype: run.dtype },
    ...{ weightDecay: run.weightDecay, clip: run.clip === 0 ? Infinity : run.clip },
    ...{ windows, weights: join(out, 'step-0000000.safetensors') },
    learningRates: readTrainLog(out)
      .filter(isStep)
      .map(({ learningRate }) => learningRate),
    ...(isCuda
      ? { device: 'cuda', attention: 'sdpa', compile: true }
      : { device: 'cpu', attention: 'plain', compile: false }),
  };
  const path = join(folder!, `job-${seed}.json`);
  writeFileSync(path, JSON.stringify(job));
  const script = fileURLToPath(new URL('train_torch.py', import.meta.url));
  const python = process.env['ROOFLINE_PYTHON'] ?? 'python3';
  const printed = execFileSync(python, [script, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  const curve = JSON.parse(printed.toString().trim().split('\n').at(-1)!) as Curve & {
    readonly torch: string;
  };
  console.log(`PyTorch ${curve.torch}, seed ${seed}: loss ${curve.losses.at(-1)!.toFixed(3)}`);
  return curve;
}

/** What the training read, in its order, and after it what it was evaluated on. */
function writeWindows(path: string, run: TrainSettings): void {
  const { batch, context: contextLength, seed, validation: validationShare, steps, evalBatches } = run;
  const source = openTokens(run.data);
  const options: TokenLoaderOptions = { batch, contextLength, seed, validationShare };
  const file = openSync(path, 'w');
  for (const [split, batches] of [
    ['train', steps],
    ['validation', evalBatches],
  ] as const) {
    using loader = new TokenLoader(source, { ...options, split });
    for (let i = 0; i < batches; i++)
      scope(() => {
        const { ids, targets } = loader.next();
        writeSync(file, joined(ids, targets));
      });
  }
  closeSync(file);
}

/** Windows of one token more. */
function joined(ids: Tensor, targets: Tensor): Int32Array {
  const [rows, columns] = ids.shape as [number, number];
  const [inputs, next] = [ids.toTypedArray(), targets.toTypedArray()] as [Int32Array, Int32Array];
  const windows = new Int32Array(rows * (columns + 1));
  for (let row = 0; row < rows; row++) {
    windows.set(inputs.subarray(row * columns, (row + 1) * columns), row * (columns + 1));
    windows[(row + 1) * (columns + 1) - 1] = next[(row + 1) * columns - 1]!;
  }
  return windows;
}

function report(): void {
  const points = { ours: ours.map(curveOf), PyTorch: theirs.map(curveOf) };
  const betweenSeeds = {
    ours: distance(points.ours[0]!, points.ours[1]!),
    PyTorch: distance(points.PyTorch[0]!, points.PyTorch[1]!),
  };
  const betweenUs = seeds.map((_, i) => distance(points.ours[i]!, points.PyTorch[i]!));
  console.table(
    seeds.flatMap((seed, i) =>
      Object.entries({ ours, PyTorch: theirs }).map(([who, curves]) => {
        const { losses, validationLoss, stepMs } = curves[i]!;
        return {
          ...{ who, seed, 'first loss': losses[0], 'last 10': curveOf(curves[i]!).at(-1), validationLoss },
          'tokens/s': Math.round((settings.batch * settings.context * 1000) / median(stepMs)),
        };
      }),
    ),
  );
  console.log(
    `Mean distance of two seeds' curves, means of ${smoothed} steps: ours ${betweenSeeds.ours}, PyTorch's ${betweenSeeds.PyTorch}`,
  );
  console.log(`Mean distance of PyTorch's curve from ours, by seed: ${betweenUs.join(', ')}`);
  writeFileSync(
    join(folder!, 'curves.json'),
    JSON.stringify({ settings, ours, PyTorch: theirs, betweenSeeds, betweenUs }, null, 1),
  );
  const isWithin = betweenUs.every((each) => each <= Math.min(betweenSeeds.ours, betweenSeeds.PyTorch));
  console.log(isWithin ? 'Within the noise of two seeds.' : 'FAILED: beyond the noise of two seeds.');
  process.exitCode = isWithin ? 0 : 1;
}

function curveOf({ losses }: Curve): number[] {
  return Array.from({ length: Math.floor(losses.length / smoothed) }, (_, point) =>
    mean(losses.slice(point * smoothed, (point + 1) * smoothed)),
  );
}

function distance(a: readonly number[], b: readonly number[]): number {
  return mean(a.map((value, i) => Math.abs(value - b[i]!)));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
