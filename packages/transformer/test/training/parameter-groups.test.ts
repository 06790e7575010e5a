import { AdamW } from '@roofline/optim';
import { describe, expect, it } from 'vitest';
import { Linear, TransformerLM, parameterGroups } from '../../src/index.ts';
import { toyConfig } from '../toy-model.ts';

function namesOf(model: TransformerLM): Record<string, string[]> {
  const names = new Map([...model.namedParameters()].map(([name, parameter]) => [parameter, name]));
  const groups = parameterGroups(model, { weightDecay: 0.2 });
  return Object.fromEntries(
    groups.map(({ weightDecay, parameters }) => [weightDecay, parameters.map((each) => names.get(each)!)]),
  );
}

describe('parameterGroups', () => {
  it('keeps decay from norms and embeddings', () => {
    const groups = namesOf(new TransformerLM({ ...toyConfig, layers: 1 }));
    expect(groups['0']).toEqual([
      'token_embeddings.weight',
      ...['layers.0.ln1.weight', 'layers.0.ln2.weight', 'ln_final.weight'],
    ]);
    expect(groups['0.2']).toContain('lm_head.weight');
    expect(groups['0.2']).toContain('layers.0.attn.q_proj.weight');
    expect(groups['0.2']).toHaveLength(8);
  });

  it('keeps it from learned positions, which are embeddings as well', () => {
    const groups = namesOf(new TransformerLM({ ...toyConfig, layers: 1, positions: 'learned' }));
    expect(groups['0']).toContain('position_embeddings.weight');
    expect(groups['0.2']).toHaveLength(8);
  });

  it('takes a tied head for the embeddings that it is, and all for an optimizer', () => {
    const model = new TransformerLM({ ...toyConfig, tieWordEmbeddings: true });
    expect(Object.values(namesOf(model)).flat()).not.toContain('lm_head.weight');
    const optimizer = new AdamW(parameterGroups(model));
    expect(new Set(optimizer.parameters())).toEqual(new Set(model.parameters()));
  });

  it('keeps it from biases, and leaves out a group without parameters', () => {
    const [decayed, free] = parameterGroups(new Linear(2, 3, { bias: true }));
    expect([decayed!.weightDecay, free!.weightDecay]).toEqual([0.1, 0]);
    expect(free!.parameters.map(({ shape }) => shape)).toEqual([[3]]);
    expect(parameterGroups(new Linear(2, 3))).toHaveLength(1);
  });
});
