import { RooflineError, type Tensor, describeValue } from '@roofline/tensor-core';
import { Mesh } from '../mesh.ts';
import type { ShardableModule } from '../sharded/parameter-unit.ts';

/** A part of a model, of which what it calculates can be wrapped. */
export interface DividableModule<Inputs extends readonly unknown[] = [x: Tensor]> {
  forward(...inputs: Inputs): Tensor;
  wrap(around: (calculation: (...inputs: unknown[]) => unknown, ...inputs: unknown[]) => unknown): void;
}

export interface DividableLinear extends DividableModule {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
}

export interface DividableNorm extends DividableModule {
  readonly weight: Tensor;
  readonly bias?: Tensor;
}

/** It may get a cache besides. */
interface DividableAttention extends DividableModule<[x: Tensor, cache?: never]> {
  readonly qProj: DividableLinear;
  readonly kProj: DividableLinear;
  readonly vProj: DividableLinear;
  readonly outputProj: DividableLinear;
  readonly qNorm: DividableNorm | null;
  readonly kNorm: DividableNorm | null;
}

interface DividableNetwork extends DividableModule {
  readonly w1: DividableLinear;
  readonly w2: DividableLinear;
  /** Of a gated network. */
  readonly w3?: DividableLinear;
}

/** Rows of so many positions, from a first one on. */
interface DividablePositions extends DividableModule<[length: number, start?: never]> {
  readonly weight: Tensor;
}

export interface DividableBlock {
  readonly attn: DividableAttention;
  readonly ffn: DividableNetwork;
  readonly ln1: DividableNorm;
  readonly ln2: DividableNorm;
}

/** A language model as TransformerLM of @roofline/transformer is one. */
export interface DividableModel extends ShardableModule {
  readonly config: {
    readonly vocabularySize: number;
    readonly feedForwardDimension: number;
    readonly heads: number;
    readonly keyValueHeads?: number;
  };
  readonly tokenEmbeddings: DividableModule & { readonly weight: Tensor };
  readonly positionEmbeddings: DividablePositions | null;
  readonly layers: readonly DividableBlock[];
  readonly lnFinal: DividableNorm;
  readonly lmHead: DividableLinear;
  headLoss: ((features: Tensor, targets: Tensor, logits: 'whole' | 'chunked') => Tensor) | null;
}

export const owner = 'parallelize';

const divided = new WeakSet<object>();

/** Whether `parallelize` has divided a model. */
export function isDivided(model: object): boolean {
  return divided.has(model);
}

export function noteDivided(model: DividableModel): void {
  divided.add(model);
}

/** Throws, in the name of `caller`, for a mesh with tensor ranks, whose parameters differ, unless `model` is divided over them. */
export function checkDivided(caller: string, model: object, mesh: unknown): void {
  const hasTensorRanks = mesh instanceof Mesh && mesh.has('tensor') && mesh.axes['tensor']! > 1;
  if (!hasTensorRanks || isDivided(model)) return;
  throw new RooflineError(
    'PARAMETERS',
    `${caller}: the mesh has the axis tensor, and the model is whole; call parallelize(model, mesh) first, or take a mesh without it.`,
  );
}

/** Throws a RooflineError unless `model` is a language model whose parts can be divided by `ranks`. */
export function checkDividable(model: DividableModel, ranks: number): void {
  const parts = ['config', 'tokenEmbeddings', 'layers', 'lnFinal', 'lmHead', 'namedModules'] as const;
  if (!parts.every((part) => model?.[part] !== undefined))
    throw new RooflineError('ARGUMENT', `${owner}: takes a TransformerLM, not ${describeValue(model)}.`);
  const { vocabularySize, feedForwardDimension, heads, keyValueHeads = heads } = model.config;
  const largest = (size: number) => {
    let divisor = Math.min(ranks, size);
    while (size % divisor !== 0) divisor--;
    return divisor;
  };
  for (const [what, size] of Object.entries({ heads, keyValueHeads, feedForwardDimension })) {
    // Fewer heads of keys than ranks are shared by as many each.
    if (size % ranks === 0 || (what === 'keyValueHeads' && ranks % size === 0)) continue;
    throw indivisible(what, size, ranks, `take a tensor axis that divides it, ${largest(size)} say`);
  }
  if (vocabularySize % ranks === 0) return;
  const padded = Math.ceil(vocabularySize / ranks) * ranks;
  throw indivisible(
    'vocabularySize',
    vocabularySize,
    ranks,
    `build the model with ${padded}, whose last tokens nothing asks for`,
  );
}

function indivisible(what: string, size: number, ranks: number, remedy: string): RooflineError {
  return new RooflineError(
    'RANGE',
    `${owner}: ${what} ${size} cannot be divided by ${ranks} tensor ranks; ${remedy}.`,
  );
}
