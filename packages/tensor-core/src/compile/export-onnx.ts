import { writeFileSync } from 'node:fs';
import { withoutAutocast } from '../op/autocast/autocast.ts';
import { noGrad } from '../tensor/tape/grad-mode.ts';
import { SegmentBuilder, canBeNodes } from './cpu/segment-builder.ts';
import { CompileError } from '../base/errors.ts';
import { checkFunction, checkObject, checkOptions, checkText, wrongArgument } from '@roofline/cuda/host';
import type { OnnxLowering } from '../op/cpu-lowering.ts';
import { requireTensors } from '../op/require-tensor.ts';
import { byteSize } from '../base/dtype.ts';
import { dynamicGraph } from '../onnx/dynamic-graph.ts';
import { OnnxGraphBuilder } from '../onnx/onnx-graph.ts';
import { encodeModel } from '../onnx/onnx-writer.ts';
import { type DynamicAxes, axesOf, inputsOfSizes, sampleSizes } from './dynamic-axes.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import type { Storage } from '../tensor/storage/storage.ts';
import { Tensor } from '../tensor/tensor.ts';
import { tracing } from '../tensor/tracing.ts';
import { readElements } from '../ops/transfer.ts';
import { withoutDeadCalls } from './graph/liveness.ts';
import type { Call, Operand, GraphStorage } from './graph/graph.ts';
import { contiguousCopy } from './trace/argument-copies.ts';
import { Trace } from './trace/trace.ts';
import { traced } from './trace/traced.ts';
import { checkResult, mapInstances } from './trace/values.ts';

/** Options of `exportOnnx`. */
export interface ExportOnnxOptions {
  /** One for each tensor. Default `input_0`, `input_1`... */
  readonly inputNames?: readonly string[];
  /** One for each tensor of the result, in its order. Default `output_0`, `output_1`... */
  readonly outputNames?: readonly string[];
  /**
   * Names of the dimensions whose length differs from run to run, by names of inputs: `{ ids: { 0: 'batch', 1: 'sequence' } }`.
   * Dimensions of one name are equally long. Without it all shapes are those of `inputs`.
   */
  readonly dynamicAxes?: DynamicAxes;
}

/** The limit of a Protocol Buffers file. ONNX could keep more in further files; those are not written. */
const mostBytes = 2 ** 31 - 1;

/**
 * Writes what `fn` does with `inputs`, without gradients, as an `.onnx` file (opset 21, ONNX's own operators alone), which
 * ONNX Runtime and other tools run: its inputs and outputs are the tensors that `fn` takes and returns, in these dtypes and,
 * but for `dynamicAxes`, shapes; parameters are embedded. Runs `fn` once; for dynamic axes at several sizes near those given,
 * from which shapes at all sizes follow: `4 × n` and `n × m` do, and a tensor that `fn` makes of n on the host does not.
 *
 * Throws a CompileError for an op without ONNX nodes, such as a random one, for more than 2 GiB of parameters, or for what does
 * not follow from the sizes of dynamic axes; what `compile` throws; and what `fn` and the file system throw.
 */
export function exportOnnx(
  path: string,
  fn: (...inputs: Tensor[]) => unknown,
  inputs: readonly Tensor[],
  options: ExportOnnxOptions = {},
): void {
  checkText('exportOnnx', 'the path', path);
  checkFunction('exportOnnx', 'what it exports', fn);
  requireTensors('exportOnnx', inputs);
  if (inputs.length === 0) throw wrongArgument('exportOnnx', 'the inputs', 'one tensor or more', inputs);
  checkOptions('exportOnnx', options, ['inputNames', 'outputNames', 'dynamicAxes']);
  if (options.dynamicAxes !== undefined) checkObject('exportOnnx', 'dynamicAxes', options.dynamicAxes);
  tracing.active?.refuse('exportOnnx() writes a file, which replays would not', 'Call it outside');
  const model = noGrad(() => withoutAutocast(() => scope(() => modelOf(fn, inputs, options))));
  writeFileSync(path, model);
}

function modelOf(
  fn: (...inputs: Tensor[]) => unknown,
  inputs: readonly Tensor[],
  options: ExportOnnxOptions,
): Uint8Array {
  const { dynamicAxes = {} } = options;
  const inputNames = namesFor('inputNames', 'input', inputs.length, options.inputNames);
  const axes = axesOf(dynamicAxes, inputNames, inputs);
  if (axes.length === 0) return encodeModel(graphOf(fn, inputs, options));
  const samples = sampleSizes(axes, inputs).map((sizes) => ({
    sizes,
    graph: scope(() => graphOf(fn, inputsOfSizes(axes, sizes, inputs), options)),
  }));
  const named = axes.map(({ name }) => name).join(' and ');
  return encodeModel({
    ...dynamicGraph(samples, axes, (why) => {
      throw new CompileError(
        `exportOnnx: what it exports is not for every ${named}: ${why}. Export it without dynamicAxes.`,
      );
    }),
    standardOnly: true,
  });
}

function graphOf(
  fn: (...inputs: Tensor[]) => unknown,
  inputs: readonly Tensor[],
  { inputNames, outputNames }: ExportOnnxOptions,
): OnnxGraphBuilder {
  const argumentCopies = inputs.map((x) => contiguousCopy(x));
  const trace = new Trace(argumentCopies, { owner: 'exportOnnx' });
  try {
    const results = resultsOf(trace, fn, argumentCopies);
    if (results.length === 0)
      throw new CompileError(
        'exportOnnx: the function returns no tensor; return what the file is to calculate.',
      );
    const names = {
      inputs: namesFor('inputNames', 'input', inputs.length, inputNames),
      outputs: namesFor('outputNames', 'output', results.length, outputNames),
    };
    checkApart([...names.inputs, ...names.outputs]);
    const builder = new SegmentBuilder(trace.storages, new OnnxGraphBuilder('v', { standardOnly: true }));
    define(builder, trace.storages, inputs, names.inputs);
    const kept = new Set(results.map(({ storage }) => storage));
    for (const call of withoutDeadCalls({ ...trace, kept })) addCall(builder, call, trace.storages);
    results.forEach((result, i) => builder.graph.namedOutput(builder.valueOf(result), names.outputs[i]!));
    return builder.graph;
  } finally {
    trace.release();
  }
}

/** The function's results as operands of the trace. */
function resultsOf(
  trace: Trace,
  fn: (...inputs: Tensor[]) => unknown,
  argumentCopies: readonly Tensor[],
): Operand[] {
  const operands: Operand[] = [];
  traced(trace, () => {
    const result = fn(...argumentCopies);
    checkResult(result, 'exportOnnx');
    mapInstances(result, Tensor, (x) => operands.push(trace.operand(x)));
  });
  return operands;
}

/** Defines what the graph is given: inputs by their names, captured storages as constants. */
function define(
  builder: SegmentBuilder,
  storages: readonly GraphStorage[],
  inputs: readonly Tensor[],
  names: readonly string[],
): void {
  let bytes = 0;
  inputs.forEach(({ dtype, shape }, i) => {
    const value = builder.graph.input(dtype, shape, names[i]!);
    storages.forEach(({ source }, number) => {
      if (source.kind === 'argument' && source.index === i) builder.define(number, value);
    });
  });
  storages.forEach(({ source, dtype, byteLength }, number) => {
    if (!('storage' in source)) return;
    if ((bytes += byteLength) > mostBytes) {
      throw new CompileError(
        `exportOnnx: the parameters take more than the ${mostBytes} bytes that one file holds; save them by saveCheckpoint().`,
      );
    }
    builder.define(
      number,
      builder.graph.constant(dtype, [byteLength / byteSize(dtype)], elementsOf(source.storage, dtype)),
    );
  });
}

function elementsOf(storage: Storage, dtype: Tensor['dtype']) {
  const whole = new Tensor(storage.retain(), dtype, [storage.byteLength / byteSize(dtype)]);
  try {
    return readElements(whole);
  } finally {
    whole.dispose();
  }
}

function addCall(builder: SegmentBuilder, call: Call, storages: readonly GraphStorage[]): void {
  const { cpu, name } = call.op;
  // It only checks values.
  if (call.outputs.length === 0) return;
  const lowering: OnnxLowering<never> | null =
    cpu.kind === 'onnx' ? cpu : cpu.kind === 'host' && cpu.nodes ? { kind: 'onnx', build: cpu.nodes } : null;
  if (lowering && canBeNodes(call, lowering, storages)) builder.add(call, lowering);
  else {
    throw new CompileError(
      `exportOnnx: ${name} has no nodes in ONNX${lowering ? ' for what it reads and writes here' : ''}; export what comes ` +
        'before or behind it.',
    );
  }
}

function namesFor(
  option: string,
  role: string,
  count: number,
  names: readonly string[] | undefined,
): readonly string[] {
  if (names === undefined) return Array.from({ length: count }, (_, i) => `${role}_${i}`);
  const isFine =
    Array.isArray(names) &&
    names.length === count &&
    names.every((name) => typeof name === 'string' && name !== '') &&
    new Set(names).size === count;
  if (!isFine) throw wrongArgument('exportOnnx', option, `${count} different names`, names);
  return names;
}

/** Throws for a name given twice, and for one that the graph may give to a value of its own. */
function checkApart(names: readonly string[]): void {
  const clash = names.find((name, i) => names.indexOf(name) < i || /^v\d+$/.test(name));
  if (clash === undefined) return;
  const wanted = 'that of one input or output alone, and not like "v0", as the values between them are named';
  throw wrongArgument('exportOnnx', 'each name', wanted, clash);
}
