import {
  type Device,
  Generator,
  compile,
  currentRange,
  defaultGenerator,
  device,
  dropout,
  noGrad,
  observeOps,
  recordMemory,
  peakMemory,
  randint,
  scope,
  type Tensor,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import {
  type AttentionFunction,
  type RecomputePolicy,
  TransformerLM,
  languageModelLoss,
  plainAttention,
} from '../../src/index.ts';
import { smallPresets, train, trainingDtypes, expectSameBits } from '../small-training.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

const policies: readonly RecomputePolicy[] = ['block', 1, 2, 3, 8, 'attention-kept', 'recursive'];
const config = { ...toyConfig, layers: 5 };
const noisyAttention: AttentionFunction = (...given) => dropout(plainAttention(...given), { p: 0.3 });
const tokens = (at: Device, seed: number) =>
  randint(0, 11, [2, 8], { generator: new Generator(seed), dtype: 'int64', device: at });

let emulated: Device | null = null;
const devices = [
  ['the CPU', () => device('cpu'), true],
  ['the emulated GPU', () => (emulated ??= openEmulatedDevice()), hostCompilerVersion() !== null],
] as const;

/** Few heads, and many: policies differ in which ops run again, not in how large these are. Heads of two features, for speed. */
const smallest = smallPresets
  .filter(([name]) => ['tiny', 'xl'].includes(name))
  .map(([name, sizes]) => {
    const { modelDimension, feedForwardDimension } = sizes;
    const halves = {
      modelDimension: modelDimension / 2,
      feedForwardDimension: Math.round(feedForwardDimension / 2),
    };
    return [name, { ...sizes, ...halves, layers: 3 }] as const;
  });

describe.each(smallest)('%s made small', (_, sizes) => {
  it.each(trainingDtypes)('trains to the same bits in %s by every policy, eager and compiled', (dtype) => {
    const run = (execution: 'eager' | 'compiled', recompute: RecomputePolicy) =>
      train(sizes, dtype, 'cpu', execution, 3, {}, { recompute });
    const plain = run('eager', 'none');
    for (const recompute of ['block', 2, 'attention-kept', 'recursive'] as const) {
      expectSameBits(run('eager', recompute), plain);
      const compiled = run('compiled', recompute);
      expectSameBits(compiled, plain);
      // The first step makes the optimizer's moments, the second is recorded.
      expect(compiled.replays).toBe(1);
    }
  });
});

describe.each(devices)('recompute on %s', (_, open, isThere) => {
  const run = (recompute: RecomputePolicy, execution: 'eager' | 'compiled') =>
    scope(() => {
      const at = open();
      const model = new TransformerLM(config, { seed: 3, device: at, recompute, attention: noisyAttention });
      const step = (ids: Tensor, targets: Tensor) => {
        model.zeroGrad();
        const loss = languageModelLoss(model, ids, targets);
        loss.backward();
        return loss.detach();
      };
      const call = execution === 'compiled' ? compile(step) : step;
      const outcomes = [1, 2, 3].map(() => {
        const loss = call(tokens(at, 1), tokens(at, 2)).item();
        return [loss, ...[...model.parameters()].map(({ grad }) => grad!.toFlatArray())];
      });
      model.dispose();
      return outcomes;
    });

  it.skipIf(!isThere).each(policies)('%s repeats dropout, to the last bit', (policy) => {
    for (const execution of ['eager', 'compiled'] as const) {
      const outcomes = [policy, 'none' as const].map((recompute) => {
        seedDefault();
        return run(recompute, execution);
      });
      expect(outcomes[0]).toEqual(outcomes[1]);
    }
  });
});

/** Attention's dropout draws from the default generator. */
function seedDefault(): void {
  defaultGenerator.manualSeed(9);
}

describe('what is run again and kept', () => {
  const [ids, targets] = [tokens(device('cpu'), 1), tokens(device('cpu'), 2)];

  /** How often each block's feed-forward network runs in a step, and the plain attention's second product. */
  function countRuns(recompute: RecomputePolicy) {
    return scope(() => {
      const model = new TransformerLM({ ...config, layers: 8 }, { recompute });
      const [networks, attentions] = [new Map<string, number>(), new Map<string, number>()];
      let layer = '';
      const stop = observeOps({
        before: ({ name }) => {
          layer = currentRange().find((each) => each.startsWith('layers.')) ?? '';
          if (name === 'swiglu') networks.set(layer, (networks.get(layer) ?? 0) + 1);
          if (name === 'matmul' && currentRange().at(-1) === 'attention.values')
            attentions.set(layer, (attentions.get(layer) ?? 0) + 1);
        },
      });
      languageModelLoss(model, ids, targets).backward();
      stop();
      model.dispose();
      return { networks: [...networks.values()], attentions: [...attentions.values()] };
    });
  }

  it('is what the policy says', () => {
    const all = (value: number) => new Array<number>(8).fill(value);
    // Of attention's values: forward, and two gradients.
    expect(countRuns('none')).toEqual({ networks: all(1), attentions: all(3) });
    expect(countRuns('block')).toEqual({ networks: all(2), attentions: all(4) });
    expect(countRuns(4)).toEqual({ networks: all(2), attentions: all(4) });
    expect(countRuns('attention-kept')).toEqual({ networks: all(2), attentions: all(3) });
    // Of eight, the first is in all three halves that are made again, the last in none.
    expect(countRuns('recursive').networks).toEqual([4, 3, 3, 2, 3, 2, 2, 1]);
  });

  it('takes less memory, least with groups of √n blocks or halves', () => {
    const layers = 16;
    const peak = (recompute: RecomputePolicy) =>
      scope(() => {
        const model = new TransformerLM({ ...config, layers, contextLength: 64 }, { recompute });
        const long = randint(0, 11, [4, 64], { generator: new Generator(1), dtype: 'int64' });
        const step = () => {
          languageModelLoss(model, long, long).backward();
          model.zeroGrad();
        };
        // What earlier tests have left to the garbage collector does not count.
        const before = device('cpu').allocatedBytes;
        const { bytes } = peakMemory(recordMemory(step))!;
        model.dispose();
        return bytes - before;
      });
    const [none, block, four, sixteen, kept, recursive] = (
      ['none', 'block', 4, 16, 'attention-kept', 'recursive'] as const
    ).map(peak);
    expect(block!).toBeLessThan(none! / 3);
    expect(kept!).toBeGreaterThan(block!);
    expect(kept!).toBeLessThan(none! / 2);
    expect(four!).toBeLessThan(none! / 2);
    expect(sixteen!).toBeGreaterThan(four!);
    expect(recursive!).toBeLessThan(block!);
  });

  it('is nothing in noGrad and while generating', () => {
    scope(() => {
      const model = new TransformerLM(config, { recompute: 'block' });
      const plain = new TransformerLM(config);
      const logits = (of: TransformerLM) => noGrad(() => of.forward(ids).toFlatArray());
      expect(logits(model)).toEqual(logits(plain));
    });
  });

  it('leaves out a block whose input needs no gradient, which would else get none itself', () => {
    scope(() => {
      for (const recompute of policies) {
        const [model, plain] = [recompute, 'none' as const].map(
          (each) => new TransformerLM(config, { recompute: each }),
        );
        for (const each of [model!, plain!]) {
          each.tokenEmbeddings.weight.requiresGrad_(false);
          languageModelLoss(each, ids, targets).backward();
        }
        const gradients = (of: TransformerLM) =>
          [...of.parameters()].map(({ grad }) => grad?.toFlatArray() ?? null);
        expect(gradients(model!)).toEqual(gradients(plain!));
        expect(gradients(model!).filter((grad) => grad === null)).toHaveLength(1);
      }
    });
  });

  it('refuses policies that do not exist, and attention that it does not know', () => {
    for (const recompute of ['half', 0, -1, 1.5, NaN, null, {}, '2'])
      expect(() => toyModel({ recompute: recompute as never })).toThrow(
        /TransformerLM: recompute must be none, block, .* or a whole/,
      );
    const own: AttentionFunction = (q) => q;
    const model = toyModel({ attention: own, recompute: 'attention-kept' });
    const run = () => languageModelLoss(model, idsOf([[1, 2]]), idsOf([[2, 3]]));
    expect(run).toThrow(/'attention-kept' finds no attention whose output it could keep.* take 'block'/);
  });
});

describe('logits in chunks', () => {
  it('give the same loss and gradients', () => {
    scope(() => {
      const [ids, targets] = [tokens(device('cpu'), 1), tokens(device('cpu'), 2)];
      for (const tieWordEmbeddings of [false, true]) {
        const outcome = (logits: 'whole' | 'chunked') => {
          const model = new TransformerLM({ ...config, tieWordEmbeddings }, { seed: 4 });
          const loss = languageModelLoss(model, ids, targets, { logits });
          loss.backward();
          return [
            [loss.item()],
            ...[...model.parameters()].map(({ grad }) => grad!.toFlatArray() as number[]),
          ];
        };
        const [whole, chunked] = [outcome('whole'), outcome('chunked')];
        whole.forEach((values, i) =>
          values.forEach((value, j) => expect(chunked[i]![j]).toBeCloseTo(value, 6)),
        );
      }
    });
  });

  it('are an option with two values', () => {
    const model = toyModel();
    const call = (logits: unknown) => () =>
      languageModelLoss(model, idsOf([[1]]), idsOf([[2]]), { logits: logits as never });
    expect(call('half')).toThrow('languageModelLoss: logits must be whole or chunked, not the text "half"');
    expect(call('chunked')().item()).toBeCloseTo(call('whole')().item(), 6);
  });
});
