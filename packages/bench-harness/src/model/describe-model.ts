import { costOf, countParametersByModule } from '@roofline/transformer';
import type { Table } from '@roofline/reports';
import type { ModelShape, NamedModel } from '../e2e/parameters.ts';
import { phaseWork } from '../e2e/phase-work.ts';

/** What `roofline model --json` prints. Sizes in bytes, for training in float32 with AdamW. */
export interface ModelDescription {
  readonly size: string;
  readonly shape: ModelShape;
  readonly batch: number;
  readonly context: number;
  /** The total. */
  readonly parameters: number;
  readonly modules: Readonly<Record<string, number>>;
  /** Of one step. */
  readonly flops: { readonly forward: number; readonly backward: number; readonly optimizer: number };
  readonly bytes: {
    readonly parameters: number;
    readonly gradients: number;
    readonly optimizerState: number;
    /** Kept from the forward for the backward pass, with plain attention; an estimate. */
    readonly activations: number;
  };
}

export function describeModel(
  { size, shape }: NamedModel,
  { batch, context }: { batch: number; context: number },
): ModelDescription {
  const config = { ...shape, contextLength: context };
  const cost = costOf(config, { batch });
  const { total, ...modules } = countParametersByModule(config);
  const { optimizer } = phaseWork(config, batch, 'train-step');
  return {
    size,
    shape,
    batch,
    context,
    parameters: total,
    modules,
    flops: { forward: cost.forwardFlops, backward: cost.backwardFlops, optimizer: optimizer!.flops },
    bytes: {
      parameters: cost.parameterBytes,
      gradients: cost.gradientBytes,
      optimizerState: cost.optimizerBytes,
      activations: cost.activationBytes,
    },
  };
}

export function modelTables(model: ModelDescription): Table[] {
  const { modelDimension, feedForwardDimension, layers, heads, vocabularySize } = model.shape;
  const words = `d_model ${modelDimension}, d_ff ${feedForwardDimension}, ${layers} layers, ${heads} heads`;
  return [
    {
      kind: 'table',
      id: 'parameters',
      title: `${model.size}: ${words}, vocabulary ${vocabularySize}`,
      columns: [
        { key: 'module', label: 'Module', kind: 'text' },
        { key: 'parameters', label: 'Parameters', kind: 'number' },
        { key: 'share', label: 'Share', kind: 'percent' },
      ],
      rows: [
        ...Object.entries(model.modules).map(([module, parameters]) => ({
          module,
          parameters,
          share: parameters / model.parameters,
        })),
        { module: 'total', parameters: model.parameters, share: 1 },
      ],
    },
    {
      kind: 'table',
      id: 'step',
      title: `One training step, batch ${model.batch}, context ${model.context}, float32, AdamW`,
      columns: [
        { key: 'what', label: '', kind: 'text' },
        { key: 'teraflops', label: 'FLOPs', unit: 'TFLOP', kind: 'number', digits: 4 },
      ],
      rows: Object.entries(model.flops).map(([what, flops]) => ({ what, teraflops: flops / 1e12 })),
    },
    {
      kind: 'table',
      id: 'memory',
      title: 'Memory of it',
      columns: [
        { key: 'what', label: '', kind: 'text' },
        { key: 'bytes', label: 'Size', kind: 'bytes' },
      ],
      rows: Object.entries({
        parameters: model.bytes.parameters,
        gradients: model.bytes.gradients,
        'optimizer state': model.bytes.optimizerState,
        'activations (estimate)': model.bytes.activations,
      }).map(([what, bytes]) => ({ what, bytes })),
    },
  ];
}

/** The presets side by side. */
export function presetTable(models: readonly ModelDescription[]): Table {
  return {
    kind: 'table',
    id: 'presets',
    title: 'Presets',
    columns: [
      { key: 'size', label: 'Size', kind: 'text', emphasis: 'strong' },
      { key: 'modelDimension', label: 'd_model', kind: 'number' },
      { key: 'feedForwardDimension', label: 'd_ff', kind: 'number' },
      { key: 'layers', label: 'Layers', kind: 'number' },
      { key: 'heads', label: 'Heads', kind: 'number' },
      { key: 'vocabularySize', label: 'Vocabulary', kind: 'number' },
      { key: 'parameters', label: 'Parameters', kind: 'number' },
    ],
    rows: models.map(({ size, shape, parameters }) => ({ size, ...shape, parameters })),
  };
}
