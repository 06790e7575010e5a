// Trains a small model to know one text by heart, byte by byte, and lets it recite:
//
//   node --conditions=roofline-source examples/overfit.ts [cpu | cuda]
//
// The loss falls from ln 256 = 5.5 nats to almost nothing, in well under a minute on two cores.
import { type Device, type DeviceSpec, device, fromTypedArray, scope } from '@roofline/tensor-core';
import { AdamW, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import { TransformerLM, generate, languageModelLoss } from '@roofline/transformer';

const text =
  'It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, ' +
  'it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of ' +
  'Darkness, it was the spring of hope, it was the winter of despair.';

const config = {
  vocabularySize: 256,
  contextLength: 64,
  modelDimension: 64,
  feedForwardDimension: 192,
  layers: 2,
  heads: 4,
};
const batch = 8;

export interface OverfitOptions {
  readonly steps?: number;
  readonly device?: DeviceSpec;
  readonly log?: (line: string) => void;
}

/** Trains and recites; gives the loss of every step, and the text that the model continued a short prompt by. */
export function overfit({ steps = 300, device: spec = 'cpu', log = () => {} }: OverfitOptions = {}) {
  const bytes = Buffer.from(text);
  const model = new TransformerLM(config, { device: spec, seed: 1 });
  const optimizer = new AdamW(model.parameters(), { weightDecay: 0.01 });
  const schedule = cosineSchedule({ maximum: 3e-3, minimum: 3e-4, warmupSteps: 20, totalSteps: steps });
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    optimizer.learningRate = schedule(step);
    losses.push(trainStep(model, optimizer, bytes, step));
    if (step % 25 === 0 || step === steps - 1)
      log(`step ${String(step).padStart(4)}   loss ${losses[step]!.toFixed(4)}`);
  }
  const prompt = bytes.subarray(0, 16);
  const continued = generate(model, [...prompt], { maxNewTokens: 100, temperature: 0 });
  return { losses, recited: Buffer.from([...prompt, ...continued]).toString(), text };
}

function trainStep(model: TransformerLM, optimizer: AdamW, bytes: Buffer, step: number): number {
  return scope(() => {
    const { ids, targets } = windows(bytes, step, model.lmHead.weight.device);
    const loss = languageModelLoss(model, ids, targets);
    loss.backward();
    clipGradientNorm(model.parameters(), 1);
    optimizer.step();
    optimizer.zeroGrad();
    return loss.item();
  });
}

/** Windows of the text at places that move on with each step, and the bytes that follow each of theirs. */
function windows(bytes: Buffer, step: number, on: Device) {
  const starts = Array.from(
    { length: batch },
    (_, b) => ((step * batch + b) * 31) % (bytes.length - config.contextLength),
  );
  const tokens = (shift: number) => {
    const ids = starts.flatMap((start) => [
      ...bytes.subarray(start + shift, start + shift + config.contextLength),
    ]);
    return fromTypedArray(Int32Array.from(ids), [batch, config.contextLength], { device: on });
  };
  return { ids: tokens(0), targets: tokens(1) };
}

if (import.meta.main) {
  const spec = (process.argv[2] ?? 'cpu') as DeviceSpec;
  console.log(`Training on ${device(spec).name}`);
  const start = performance.now();
  const { recited } = overfit({ device: spec, log: console.log });
  console.log(`${((performance.now() - start) / 1000).toFixed(1)} s. The model recites:\n${recited}`);
}
