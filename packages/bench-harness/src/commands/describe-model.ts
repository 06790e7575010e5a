import { costOf, countParametersByModule } from '@roofline/transformer';
import type { Table } from '@roofline/reports';
import type { NamedModel } from '../model/shape.ts';
import { phaseWork } from '../benchmarks/e2e/phase-work.ts';

/** What `roofline model --json` prints. Sizes in bytes, for training in float32 with AdamW. */
export function describeModel(
  { size, shape }: NamedModel,
  { batch, context }: { batch: number; context: number },
) {
  const config = { ...shape, contextLength: context };
  const cost = costOf(config, { batch });
  const { total, ...modules } = countParametersByModule(config);
  const { forwardFlops: forward, backwardFlops: backward } = cost;
  const optimizer = phaseWork(config, batch, 'train-step', 'float32').optimizer!.flops;
  return {
    size,
    shape,
    batch,
    context,
    parameters: total,
    modules,
    // Of one step.
    flops: { forward, backward, optimizer, total: forward + backward + optimizer },
    bytes: bytesOf(cost),
  };
}
export type ModelDescription = ReturnType<typeof describeModel>;

function bytesOf({
  parameterBytes: parameters,
  gradientBytes: gradients,
  optimizerBytes: optimizerState,
  activationBytes: activations,
}: ReturnType<typeof costOf>) {
  // What is kept from the forward for the backward pass, with plain attention, is an estimate.
  const total = parameters + gradients + optimizerState + activations;
  return { parameters, gradients, optimizerState, activations, total };
}

export function modelTables(model: ModelDescription): Table[] {
  return [parameterTable(model), flopsTable(model), memoryTable(model)];
}

function parameterTable({ size, shape, modules, parameters }: ModelDescription): Table {
  const { modelDimension, feedForwardDimension, layers, heads, vocabularySize } = shape;
  const { keyValueHeads = heads } = shape;
  const shared = keyValueHeads === heads ? '' : ` (${keyValueHeads} of keys)`;
  const words = `d_model ${modelDimension}, d_ff ${feedForwardDimension}, ${layers} layers, ${heads} heads${shared}`;
  const counted = Object.entries(modules).filter(([, count]) => count > 0);
  const row = (module: string, count: number) => ({ module, parameters: count, share: count / parameters });
  return {
    kind: 'table',
    id: 'parameters',
    title: `${size}: ${words}, vocabulary ${vocabularySize}`,
    columns: [
      { key: 'module', label: 'Module', kind: 'text' },
      { key: 'parameters', label: 'Parameters', kind: 'number' },
      { key: 'share', label: 'Share', kind: 'percent' },
    ],
    rows: [...counted.map(([name, count]) => row(name, count)), row('total', parameters)],
  };
}

const flopUnits = [
  [1e12, 'TFLOP'],
  [1e9, 'GFLOP'],
  [1e6, 'MFLOP'],
] as const;

function flopsTable({ batch, context, flops }: ModelDescription): Table {
  const [size, unit] = flopUnits.find(([least]) => flops.total >= least) ?? flopUnits.at(-1)!;
  return {
    kind: 'table',
    id: 'step',
    title: `One training step, batch ${batch}, context ${context}, float32, AdamW`,
    columns: [
      { key: 'what', label: '', kind: 'text' },
      { key: 'flops', label: 'FLOPs', unit, kind: 'number', digits: 4 },
    ],
    rows: Object.entries(flops).map(([what, count]) => ({ what, flops: count / size })),
  };
}

function memoryTable({ bytes }: ModelDescription): Table {
  const rows = {
    parameters: bytes.parameters,
    gradients: bytes.gradients,
    'optimizer state': bytes.optimizerState,
    'activations (estimate)': bytes.activations,
    total: bytes.total,
  };
  return {
    kind: 'table',
    id: 'memory',
    title: 'Memory of it',
    columns: [
      { key: 'what', label: '', kind: 'text' },
      { key: 'bytes', label: 'Size', kind: 'bytes' },
    ],
    rows: Object.entries(rows).map(([what, byteLength]) => ({ what, bytes: byteLength })),
  };
}

/** The presets side by side. */
export function presetTable(models: readonly ModelDescription[]): Table {
  return {
    kind: 'table',
    id: 'presets',
    title: 'Presets',
    caption:
      "CS336's handout of 2026 means 2.7b by its xl (d_model 2560); 2.7b is a name, not the number of its parameters.",
    columns: [
      { key: 'size', label: 'Size', kind: 'text', emphasis: 'strong' },
      { key: 'modelDimension', label: 'd_model', kind: 'number' },
      { key: 'feedForwardDimension', label: 'd_ff', kind: 'number' },
      { key: 'layers', label: 'Layers', kind: 'number' },
      { key: 'heads', label: 'Heads', kind: 'number' },
      { key: 'vocabularySize', label: 'Vocabulary', kind: 'number' },
      { key: 'parameters', label: 'Parameters', kind: 'number' },
    ],
    rows: models.map(({ size, shape, parameters }) => {
      const { modelDimension, feedForwardDimension, layers, heads, vocabularySize } = shape;
      return { size, modelDimension, feedForwardDimension, layers, heads, vocabularySize, parameters };
    }),
  };
}
