import { type LogitsMode, parameterShapes } from '@roofline/transformer';
import type { ModelAttention } from '../attention/kinds.ts';
import type { Execution } from '../execution/kinds.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import type { ModelShape } from '../model/shape.ts';
import type { Recomputation } from './kinds.ts';

/** A training step, whatever it is divided into. */
export interface StepSetting {
  readonly shape: ModelShape;
  /** Tokens of a sequence. */
  readonly context: number;
  /** Sequences for each device, or the part of one where they are fewer than devices; on paper any part. */
  readonly batch: number;
  readonly dtype: BenchmarkDType;
  readonly attention: ModelAttention;
  readonly execution: Execution;
  readonly recompute: Recomputation;
  /** Whether logits are made for all tokens, or for a chunk at a time with its loss. Default `whole`. */
  readonly logits?: LogitsMode;
}

export const FLOAT32_BYTES = 4;
export const elementBytes = (dtype: BenchmarkDType) => (dtype === 'float32' ? FLOAT32_BYTES : 2);

/** The step as tensor parallel ranks have it: fewer heads of keys and values than ranks are there once for each of them. */
export function withCopies(setting: StepSetting, tensor: number): StepSetting {
  const { shape } = setting;
  const { heads, keyValueHeads = heads } = shape;
  return keyValueHeads >= tensor ? setting : { ...setting, shape: { ...shape, keyValueHeads: tensor } };
}

/** Parameters of a model by the units that are gathered together: embedding, each layer, and the head. */
export function parameterUnits({ shape, context }: Pick<StepSetting, 'shape' | 'context'>) {
  const { layers } = shape;
  const units = { embedding: 0, layer: 0, head: 0 };
  for (const [name, sizes] of shapesWithOneLayer(shape, context)) {
    const unit = name.startsWith('layers.') ? 'layer' : name.includes('embeddings') ? 'embedding' : 'head';
    units[unit] += sizes.reduce((product, size) => product * size, 1);
  }
  const { embedding, layer, head } = units;
  return { ...units, layers, total: embedding + layers * layer + head };
}

/** How many tensors a model's parameters are. */
export function tensorsOf({ shape, context }: Pick<StepSetting, 'shape' | 'context'>): number {
  const names = [...shapesWithOneLayer(shape, context)].map(([name]) => name);
  const ofLayer = names.filter((name) => name.startsWith('layers.')).length;
  return names.length + (shape.layers - 1) * ofLayer;
}

/** Features of a token in a layer. */
export function layerWidths(shape: ModelShape) {
  const shapes = new Map(shapesWithOneLayer(shape, 1));
  const rowsOf = (name: string) => shapes.get(`layers.0.attn.${name}.weight`)![0]!;
  const products = [...shapes].filter(([name, { length }]) => name.startsWith('layers.') && length === 2);
  const ofKeys = [...shapes].filter(([name]) => /attn\.[kv]_proj\./.test(name));
  return {
    // Of all heads, values having as many as keys; and of one head.
    ...{ queries: rowsOf('q_proj'), keys: rowsOf('k_proj'), head: rowsOf('q_proj') / shape.heads },
    /** What the feed-forward network keeps for its backward pass, in its hidden width: SwiGLU both sides and their product. */
    hidden: shapes.has('layers.0.ffn.w3.weight') ? 3 : 2,
    /** Whether queries and keys pass norms. */
    normed: shapes.has('layers.0.attn.q_norm.weight'),
    /** Parameters of the projections of keys and values, one by one. */
    ofKeys: ofKeys.map(([, sizes]) => sizes.reduce((product, size) => product * size, 1)),
    /** Weights of a layer's products. */
    weights: products.reduce((sum, [, [rows, columns]]) => sum + rows! * columns!, 0),
  };
}

function shapesWithOneLayer(shape: ModelShape, contextLength: number): ReturnType<typeof parameterShapes> {
  return parameterShapes({ ...shape, layers: 1, contextLength });
}
