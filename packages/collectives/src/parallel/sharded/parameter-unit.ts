import { DTypeError, RooflineError, Tensor, describeValue, formatShape } from '@roofline/tensor-core';
import type { NamedTensor } from '../check-agreement.ts';
import { owner } from './sharding-options.ts';

/** A part of a model, as those of @roofline/transformer: what it calculates, its parameters and what it is made of. */
export interface ShardableModule {
  forward(...inputs: never): unknown;
  namedParameters(prefix?: string, options?: { readonly removeDuplicate?: boolean }): Iterable<NamedTensor>;
  children(): Iterable<readonly [name: string, child: ShardableModule]>;
  namedModules(): Iterable<readonly [name: string, module: ShardableModule]>;
}

/** Modules whose parameters are gathered together, with these. */
export interface UnitPlan {
  readonly modules: ShardableModule[];
  readonly parameters: NamedTensor[];
}

/**
 * The units of a model, in its order: each module of a list, such as a block, is one, and so are the children between lists
 * together, such as the last norm and the head. Those that share a tied parameter are one unit. Throws a RooflineError for what
 * is not a model, or has parameters that belong to none of its children.
 */
export function planUnits(model: ShardableModule): UnitPlan[] {
  requireModel(model);
  const units: UnitPlan[] = [];
  let open: UnitPlan | null = null;
  for (const [name, child] of model.children()) {
    const isListed = /\.\d+$/.test(name);
    const unit: UnitPlan = (isListed ? null : open) ?? { modules: [], parameters: [] };
    if (!units.includes(unit)) units.push(unit);
    open = isListed ? null : unit;
    unit.modules.push(child);
    unit.parameters.push(...child.namedParameters(name));
  }
  const inChildren = new Set(units.flatMap(({ parameters }) => parameters.map(([, tensor]) => tensor)));
  const own = [...model.namedParameters()].find(([, tensor]) => !inChildren.has(tensor));
  if (own)
    throw new RooflineError(
      'PARAMETERS',
      `${owner}: "${own[0]}" belongs to the model itself; give it to a child, whose forward() gathers it.`,
    );
  return joinTied(units.filter(({ parameters }) => parameters.length > 0));
}

function joinTied(units: readonly UnitPlan[]): UnitPlan[] {
  const joined: UnitPlan[] = [];
  const unitOf = new Map<Tensor, UnitPlan>();
  for (const unit of units) {
    const tied = unit.parameters
      .map(([, tensor]) => unitOf.get(tensor))
      .find((other) => other && other !== unit);
    const home = tied ?? unit;
    if (tied) home.modules.push(...unit.modules);
    else joined.push(unit);
    const seen = new Set(tied ? tied.parameters.map(([, tensor]) => tensor) : []);
    const parameters = unit.parameters.filter(([, tensor]) => !seen.has(tensor) && seen.add(tensor));
    if (tied) tied.parameters.push(...parameters);
    else unit.parameters.splice(0, Infinity, ...parameters);
    for (const [, tensor] of parameters) unitOf.set(tensor, home);
  }
  return joined;
}

function requireModel(model: ShardableModule): void {
  const methods = ['forward', 'namedParameters', 'children', 'namedModules'] as const;
  if (methods.every((method) => typeof model?.[method] === 'function')) return;
  throw new RooflineError('ARGUMENT', `${owner}: takes a module with children, not ${describeValue(model)}.`);
}

/** Throws for a parameter that cannot be sharded. */
export function checkShardable(name: string, tensor: Tensor): void {
  if (!tensor.isLeaf)
    throw new RooflineError('PARAMETERS', `${owner}: "${name}" was made by an op; only leaves are sharded.`);
  if (tensor.dtype !== 'float32')
    throw new DTypeError(
      `${owner}: "${name}" ${formatShape(tensor.shape)} is ${tensor.dtype}; shards are of float32 parameters, which are gathered ` +
        'in computeDtype.',
    );
}

/** Puts `replacements` in the place of parameters, wherever the model has them. */
export function replaceParameters(model: ShardableModule, replacements: ReadonlyMap<Tensor, Tensor>): void {
  for (const [, module] of model.namedModules()) {
    const parts = module as unknown as Record<string, unknown>;
    for (const [property, value] of Object.entries(parts))
      if (value instanceof Tensor) parts[property] = replacements.get(value) ?? value;
  }
}
