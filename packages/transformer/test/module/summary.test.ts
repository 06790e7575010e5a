import { inspect } from 'node:util';
import { type Tensor, ones } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { Linear, Module, RMSNorm, TransformerLM, summary } from '../../src/index.ts';

const config = {
  ...{ vocabularySize: 5, contextLength: 8, modelDimension: 4, feedForwardDimension: 6 },
  ...{ layers: 3, heads: 2 },
};

class Towers extends Module<[x: Tensor], Tensor> {
  readonly scale = ones([2], { requiresGrad: true });
  readonly towers: readonly Linear[];
  readonly head: Linear;

  constructor(widths: readonly number[], tied = false) {
    super();
    this.towers = widths.map((width) => new Linear(4, width, { seed: 1 }));
    this.head = new Linear(4, widths[0]!, {
      seed: 2,
      bias: true,
      ...(tied && { weight: this.towers[0]!.weight }),
    });
  }

  protected override compute(x: Tensor): Tensor {
    return x;
  }
}

describe('a printed module', () => {
  it('is a tree of classes with counts, bytes and shapes, in which layers that are alike stand once', () => {
    expect(inspect(new TransformerLM(config, { seed: 0 }))).toBe(
      `TransformerLM  476 parameters, 1.86 KiB
├─ token_embeddings: Embedding  weight [5, 4] float32
├─ layers.{0-2}: TransformerBlock  144 parameters, 576 B each, 3 times
│  ├─ attn: CausalSelfAttention  64 parameters, 256 B
│  │  ├─ q_proj: Linear  weight [4, 4] float32
│  │  ├─ k_proj: Linear  weight [4, 4] float32
│  │  ├─ v_proj: Linear  weight [4, 4] float32
│  │  └─ output_proj: Linear  weight [4, 4] float32
│  ├─ ffn: SwiGLU  72 parameters, 288 B
│  │  ├─ w1: Linear  weight [6, 4] float32
│  │  ├─ w2: Linear  weight [4, 6] float32
│  │  └─ w3: Linear  weight [6, 4] float32
│  ├─ ln1: RMSNorm  weight [4] float32
│  └─ ln2: RMSNorm  weight [4] float32
├─ ln_final: RMSNorm  weight [4] float32
└─ lm_head: Linear  weight [5, 4] float32`,
    );
  });

  it('keeps layers of other sizes apart, those of an array from other children, and shows its own parameters first', () => {
    expect(inspect(new Towers([3, 3, 5, 3]))).toBe(
      `Towers  73 parameters, 292 B
├─ scale  [2] float32
├─ towers.{0-1}: Linear  weight [3, 4] float32 each, 2 times
├─ towers.2: Linear  weight [5, 4] float32
├─ towers.3: Linear  weight [3, 4] float32
└─ head: Linear  weight [3, 4] float32, bias [3] float32`,
    );
  });

  it('counts a tied parameter once, and is drawn after its module has been disposed of', () => {
    const tied = new Towers([3], true);
    expect(inspect(tied).split('\n')[0]).toBe('Towers  17 parameters, 68 B');
    tied.dispose();
    expect(inspect(tied)).toContain('weight [3, 4] float32');
  });

  it('without parameters has none', () => {
    class Nothing extends Module<[x: Tensor], Tensor> {
      protected override compute(x: Tensor): Tensor {
        return x;
      }
    }
    expect(inspect(new Nothing())).toBe('Nothing  0 parameters, 0 B');
  });
});

describe('summary', () => {
  it('has the whole, each module and each parameter by its name in a state', () => {
    const model = new Towers([3, 5]);
    const rows = summary(model);
    expect(rows[0]).toEqual({ name: '', kind: 'Towers', parameters: 2 + 12 + 20 + 15, bytes: 4 * 49 });
    expect(rows[1]).toEqual({ name: 'scale', kind: '[2] float32', parameters: 2, bytes: 8 });
    const names = rows.map(({ name }) => name);
    expect(Object.keys(model.stateDict()).filter((name) => !names.includes(name))).toEqual([]);
    expect(rows.find(({ name }) => name === 'towers.1')).toEqual({
      ...{ name: 'towers.1', kind: 'Linear', parameters: 20, bytes: 80 },
    });
  });
});

describe('options that need not be given', () => {
  it('draw weights from the default generator, or a seed, the same on each device', () => {
    const [a, b] = [new Linear(3, 2, { seed: 5 }), new Linear(3, 2, { seed: 5 })];
    expect(a.weight.toFlatArray()).toEqual(b.weight.toFlatArray());
    expect(new Linear(3, 2).weight.toFlatArray()).not.toEqual(new Linear(3, 2).weight.toFlatArray());
    expect(new RMSNorm(2).weight.toFlatArray()).toEqual([1, 1]);
  });
});
