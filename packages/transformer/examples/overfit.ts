// Trains a small model to know one text by heart, byte by byte, and lets it recite:
//
//   node --conditions=roofline-source examples/overfit.ts [cpu | cuda]
//
// The loss falls from ln 256 = 5.5 nats to almost nothing, in well under a minute on two cores.
import { type DeviceSpec, type Tensor, compile, device, scope } from '@roofline/tensor-core';
import { AdamW, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import {
  TransformerLM,
  byteWindows,
  generate,
  languageModelLoss,
  overfitExample,
} from '@roofline/transformer';

const { text, config, batch } = overfitExample;

type Windows = ReturnType<typeof byteWindows>;

export interface OverfitOptions {
  readonly steps?: number;
  readonly device?: DeviceSpec;
  readonly log?: (line: string) => void;
}

/** Trains and recites; gives the loss of every step, and the text that the model continued a short prompt by. */
export function overfit({ steps = 300, device: spec = 'cpu', log = () => {} }: OverfitOptions = {}) {
  const model = new TransformerLM(config, { device: spec, seed: 1 });
  const optimizer = new AdamW(model.parameters(), { weightDecay: 0.01 });
  const schedule = cosineSchedule({ maximum: 3e-3, minimum: 3e-4, warmupSteps: 20, totalSteps: steps });
  // From its third call on it runs as one program, without this JavaScript.
  const trainStep = compile(({ ids, targets }: Windows): Tensor => {
    const loss = languageModelLoss(model, ids, targets);
    loss.backward();
    clipGradientNorm(model.parameters(), 1);
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  });
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    optimizer.learningRate = schedule(step);
    scope(() => {
      const { device } = model.lmHead.weight;
      const windows = { step, batch, contextLength: config.contextLength, device };
      losses.push(trainStep(byteWindows(text, windows)).item());
    });
    if (step % 25 === 0 || step === steps - 1)
      log(`step ${String(step).padStart(4)}   loss ${losses[step]!.toFixed(4)}`);
  }
  const prompt = Buffer.from(text).subarray(0, 16);
  const continued = generate(model, [...prompt], { maxNewTokens: 100, temperature: 0 });
  return { losses, recited: Buffer.from([...prompt, ...continued]).toString(), text };
}

if (import.meta.main) {
  const spec = (process.argv[2] ?? 'cpu') as DeviceSpec;
  console.log(`Training on ${device(spec).name}`);
  const start = performance.now();
  const { recited } = overfit({ device: spec, log: console.log });
  console.log(`${((performance.now() - start) / 1000).toFixed(1)} s. The model recites:\n${recited}`);
}
