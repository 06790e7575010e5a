import { type Tensor, keep, noGrad, scope, zeros } from '@roofline/tensor-core';
import { type PartPlace, type StoredTensors, refuseMisfits } from './sharded-parts.ts';

/** This rank's part of a parameter. */
export interface Part extends PartPlace {
  readonly name: string;
  /** Its elements. */
  readonly leaf: Tensor;
  /** Whether another rank has the same, and writes it. Default: it is this rank's alone. */
  readonly isCopy?: boolean;
}

/** Tensors and text of an optimizer: those of a parameter end with its number, and lists have an entry for each. */
interface State {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An optimizer of a rank's parts: those of @roofline/optim. */
export interface PartOptimizer {
  parameters(): Iterable<Tensor>;
  stateDict(): State;
  loadStateDict(state: State): void;
}

/** What the state says in text: of all parameters, and of each by its name. */
export interface StateTexts {
  readonly common: Readonly<Record<string, string>>;
  readonly ofParameters: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The name under which the metadata of a file hold the texts. */
export const stateKey = 'optimizer';
export const nameOf = (what: string, parameter: string) => `optimizer.${what}/${parameter}`;

/** The other way round. */
export const whatOf = (name: string) => /^optimizer\.(.*?)\//.exec(name)?.[1] ?? null;

/** Where a part belongs, as its file says it. */
export function placeOf({ shape, start, end, box }: PartPlace): PartPlace {
  return { shape, start, end, ...(box && { box }) };
}

/** The parts in the order of the optimizer's parameters; null for what is none of them. */
function inOrder(optimizer: PartOptimizer, parts: Iterable<Part>): (Part | null)[] {
  const byLeaf = new Map([...parts].map((part) => [part.leaf, part]));
  return [...optimizer.parameters()].map((parameter) => byLeaf.get(parameter) ?? null);
}

/** An optimizer's state by the names of parameters; the tensors are the caller's to dispose. */
export function stateOfParts(
  optimizer: PartOptimizer,
  parts: Iterable<Part>,
): { tensors: Map<string, PartPlace & { readonly tensor: Tensor }>; texts: StateTexts } {
  const ordered = inOrder(optimizer, parts);
  const { tensors, metadata } = optimizer.stateDict();
  const named = new Map<string, PartPlace & { readonly tensor: Tensor }>();
  for (const [key, tensor] of Object.entries(tensors)) {
    const [, what, number] = /^(.*)\.(\d+)$/.exec(key)!;
    const part = ordered[Number(number)];
    if (!part || part.isCopy) continue;
    named.set(nameOf(what!, part.name), { ...placeOf(part), tensor });
  }
  const texts: { common: Record<string, string>; ofParameters: Record<string, Record<string, unknown>> } = {
    common: {},
    ofParameters: {},
  };
  for (const [key, text] of Object.entries(metadata)) {
    const list = listOf(text, ordered.length);
    if (list === null) texts.common[key] = text;
    else
      texts.ofParameters[key] = Object.fromEntries(
        ordered.flatMap((part, i) => (part ? [[part.name, list[i]]] : [])),
      );
  }
  return { tensors: named, texts };
}

/** Where states are read from. */
export type StoredStates = Pick<StoredTensors, 'names' | 'texts' | 'misfit' | 'read'>;

/** Loads into an optimizer what is stored of its parameters' state. Throws a StateError where it is of others. */
export function loadParts(
  path: string,
  optimizer: PartOptimizer,
  parts: Iterable<Part>,
  stored: StoredStates,
): void {
  const ordered = inOrder(optimizer, parts);
  const names = new Set(stored.names);
  const whats = [...new Set(stored.names.flatMap((name) => whatOf(name) ?? []))];
  // Parameters that have made no step have none; whether that may be, the optimizer tells.
  const isStored = ({ name }: Part) => whats.some((what) => names.has(nameOf(what, name)));
  const wanted = ordered.flatMap((part, i) =>
    part && isStored(part)
      ? whats.map((what) => ({ key: `${what}.${i}`, name: nameOf(what, part.name), part }))
      : [],
  );
  const complaints = wanted.map(({ name, part }) => stored.misfit(name, part));
  refuseMisfits(
    path,
    complaints.filter((complaint) => complaint !== null),
  );
  noGrad(() =>
    scope(() => {
      const tensors = wanted.map(({ key, name, part }) => {
        const tensor = keep(zeros(part.leaf.shape, { device: part.leaf.device }));
        stored.read(name, part, tensor);
        return [key, tensor] as const;
      });
      try {
        optimizer.loadStateDict({
          tensors: Object.fromEntries(tensors),
          metadata: textsFor(ordered, stored),
        });
      } finally {
        for (const [, tensor] of tensors) tensor.dispose();
      }
    }),
  );
}

/** What is of no parameter has made no step. */
function textsFor(ordered: readonly (Part | null)[], stored: StoredStates): Record<string, string> {
  const all = stored.texts(stateKey).map((text) => JSON.parse(text) as StateTexts);
  const lists = [...new Set(all.flatMap(({ ofParameters }) => Object.keys(ofParameters)))].map((key) => {
    const entries = Object.assign({}, ...all.map(({ ofParameters }) => ofParameters[key])) as Record<
      string,
      unknown
    >;
    return [key, JSON.stringify(ordered.map((part) => (part ? entries[part.name] : 0)))] as const;
  });
  return { ...all[0]?.common, ...Object.fromEntries(lists) };
}

/** What text that is a JSON list has for each of `count` parameters; null for text about all. */
export function listOf(text: string, count: number): unknown[] | null {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.length === count ? list : null;
  } catch {
    return null;
  }
}
