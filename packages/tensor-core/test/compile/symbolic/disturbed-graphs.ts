import type { Call, Graph, Operand } from '../../../src/compile/graph/graph.ts';
import { withoutDeadCalls } from '../../../src/compile/graph/liveness.ts';
import type { ComputeOp } from '../../../src/op/op.ts';
import { fillOp } from '../../../src/ops/copy/in-place.ts';
import { neg } from '../../../src/ops/elementwise/arithmetic.ts';
import { zeros } from '../../../src/ops/creation/from-values.ts';
import { byteSize } from '../../../src/base/dtype.ts';
import { contiguousStrides, sameShape } from '../../../src/base/shape.ts';
import { graphOf } from '../traced-graph.ts';

/** A graph with one change, and what that is. */
export interface Disturbed {
  readonly change: string;
  readonly graph: Graph;
}

/**
 * What larger programs do around the calls of a small one, a change at a time: a storage outlives the run; a call reads or
 * writes an operand, or an element of it, between two calls; a call has other attributes, or reads another operand of the
 * same shape and dtype.
 */
export function disturbedGraphs(graph: Graph): Disturbed[] {
  const operands = operandsOf(graph);
  const disturbed = [
    ...keeping(graph),
    ...operands.flatMap((operand) => [...reading(graph, operand), ...writing(graph, operand)]),
    ...attributesChanged(graph),
    ...operands.flatMap((operand) => exchanged(graph, operand)),
  ];
  return disturbed.map(({ change, graph: each }) => ({
    change,
    graph: { ...each, calls: withoutDeadCalls(each) },
  }));
}

/** The operands of all calls, each once, and an element of those that have several. */
function operandsOf({ calls }: Graph): Operand[] {
  const all = calls.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
  const parts = all.flatMap((operand) => (operand.size > 1 ? [elementOf(operand)] : []));
  return [...new Map([...all, ...parts].map((operand) => [keyOf(operand), operand])).values()];
}

function elementOf(operand: Operand): Operand {
  const layout = { shape: [1], strides: [1], size: 1, isContiguous: true };
  return { ...operand, ...layout, byteLength: byteSize(operand.dtype) };
}

const keyOf = ({ storage, offset, dtype, shape, strides }: Operand) =>
  JSON.stringify([storage, offset, dtype, shape, strides]);

const said = ({ storage, offset, shape }: Operand) => `storage ${storage}, from ${offset} on, [${shape}]`;

function keeping(graph: Graph): Disturbed[] {
  return graph.storages.flatMap(({ source }, number) =>
    source.kind === 'made' && !graph.kept.has(number)
      ? [{ change: `keeps storage ${number}`, graph: { ...graph, kept: new Set([...graph.kept, number]) } }]
      : [],
  );
}

/** The places between calls at which an operand has been made. */
function placesBehind({ calls, storages }: Graph, { storage }: Operand): number[] {
  const made = calls.findIndex(({ outputs }) => outputs.some((output) => output.storage === storage));
  const first = storages[storage]!.source.kind === 'made' ? made + 1 : 0;
  return Array.from({ length: calls.length + 1 - first }, (_, i) => first + i);
}

function reading(graph: Graph, operand: Operand): Disturbed[] {
  const { shape, dtype, size } = operand;
  const number = graph.storages.length;
  const byteLength = size * byteSize(dtype);
  const layout = { shape, strides: contiguousStrides(shape), offset: 0, isContiguous: true };
  const output: Operand = { storage: number, dtype, size, byteLength, ...layout };
  const call = callOf(negOf(graph), [operand], [output]);
  const storages = [...graph.storages, { byteLength, dtype, source: { kind: 'made' } as const }];
  const kept = new Set([...graph.kept, number]);
  return placesBehind(graph, operand).map((at) => ({
    change: `reads ${said(operand)}, before call ${at}`,
    graph: { ...graph, storages, kept, calls: graph.calls.toSpliced(at, 0, call) },
  }));
}

function writing(graph: Graph, operand: Operand): Disturbed[] {
  const call = callOf(fillOp, [operand], [operand], { value: 7 });
  const isGiven = graph.storages[operand.storage]!.source.kind !== 'made';
  const written = isGiven ? new Set([...graph.written, operand.storage]) : graph.written;
  return placesBehind(graph, operand).map((at) => ({
    change: `writes ${said(operand)}, before call ${at}`,
    graph: { ...graph, written, calls: graph.calls.toSpliced(at, 0, call) },
  }));
}

function callOf<A>(
  op: ComputeOp<A>,
  inputs: readonly Operand[],
  outputs: readonly Operand[],
  attributes?: A,
): Call {
  return { op: op as ComputeOp<never>, inputs, outputs, attributes, live: null, range: null };
}

function negOf({ device }: Graph): ComputeOp<undefined> {
  return graphOf(() => [neg(zeros([1], { device }))]).graph.calls.at(-1)!.op as ComputeOp<undefined>;
}

function attributesChanged(graph: Graph): Disturbed[] {
  return graph.calls.flatMap((call, at) =>
    Object.entries((call.attributes ?? {}) as Record<string, unknown>)
      .filter(([, value]) => typeof value === 'number')
      .map(([name, value]) => {
        const attributes = { ...(call.attributes as object), [name]: (value as number) + 1 };
        return {
          change: `${name} of call ${at} is greater by one`,
          graph: { ...graph, calls: graph.calls.with(at, { ...call, attributes }) },
        };
      }),
  );
}

/** A call that reads `operand` in place of another like it. */
function exchanged(graph: Graph, operand: Operand): Disturbed[] {
  return placesBehind(graph, operand).flatMap((at) => {
    const call = graph.calls[at];
    if (!call) return [];
    return call.inputs.flatMap((input, place) => {
      if (call.op.mutates?.includes(place) || keyOf(input) === keyOf(operand)) return [];
      if (input.dtype !== operand.dtype || !sameShape(input.shape, operand.shape)) return [];
      return [
        {
          change: `call ${at} reads ${said(operand)} as input ${place}`,
          graph: {
            ...graph,
            calls: graph.calls.with(at, { ...call, inputs: call.inputs.with(place, operand) }),
          },
        },
      ];
    });
  });
}
