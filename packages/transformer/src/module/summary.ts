import { byteSize, formatShape, sizeOf, type Tensor } from '@roofline/tensor-core';
import { type AnyModule, requireModule } from './module.ts';

/** A module, or a parameter that belongs to none of its children, as a row of a table. */
export interface ModuleSummary {
  /** As in a state: `layers.0.attn.q_proj.weight`; empty for the whole. */
  readonly name: string;
  /** The module's class, or the parameter's shape and dtype. */
  readonly kind: string;
  /** Of all its parameters, each tied one once. */
  readonly parameters: number;
  readonly bytes: number;
}

/**
 * The modules and parameters of a model, the whole first, for `console.table`. Throws a RooflineError (code ARGUMENT) for what is
 * not a module.
 */
export function summary(module: AnyModule): ModuleSummary[] {
  requireModule('summary', module);
  return rowsOf(module, '', new Set());
}

function rowsOf(module: AnyModule, name: string, seen: Set<AnyModule>): ModuleSummary[] {
  if (seen.has(module)) return [];
  seen.add(module);
  const under = (part: string) => (name === '' ? part : `${name}.${part}`);
  return [
    { name, kind: module.constructor.name, ...sizesOf(module.parameters()) },
    ...ownParameters(module).map(([part, tensor]) => ({
      ...{ name: under(part), kind: describe(tensor) },
      ...sizesOf([tensor]),
    })),
    ...[...module.children()].flatMap(([part, child]) => rowsOf(child, under(part), seen)),
  ];
}

/** Parameters that are properties of the module itself. */
export function ownParameters(module: AnyModule): [name: string, parameter: Tensor][] {
  const below = [...module.children()].map(([name]) => `${name}.`);
  return [...module.namedParameters('', { removeDuplicate: false })].filter(
    ([name]) => !below.some((prefix) => name.startsWith(prefix)),
  );
}

export function describe({ shape, dtype }: Tensor): string {
  return `${formatShape(shape)} ${dtype}`;
}

export function sizesOf(tensors: Iterable<Tensor>): { parameters: number; bytes: number } {
  let [parameters, bytes] = [0, 0];
  for (const { shape, dtype } of tensors) {
    parameters += sizeOf(shape);
    bytes += sizeOf(shape) * byteSize(dtype);
  }
  return { parameters, bytes };
}
