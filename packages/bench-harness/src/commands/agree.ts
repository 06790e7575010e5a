import type { Row, Table } from '@roofline/reports';
import { TOLERANCES, type AgreeJob, type AgreeResult } from '../peer/agree/agree-job.ts';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parseWholeNumber } from '../cli/option-values.ts';
import { printJson, tell } from '../cli/output.ts';
import { printTable } from '../cli/print-table.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { EXIT, UsageError } from '../errors.ts';
import { peerChoice } from '../cli/flags/choices.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';

export const agreeCommand = defineCommand({
  flags: {
    peer: { ...peerChoice, default: 'torch', describe: 'What to check against' },
    configurations: {
      type: 'string',
      default: '2',
      describe: 'How many tiny random configurations',
      coerce: parseWholeNumber('configurations', 0),
    },
    wide: {
      type: 'string',
      default: '2',
      describe: 'How many wide ones, which use the kernels of large models; their seeds follow',
      coerce: parseWholeNumber('wide', 0),
    },
    seed: {
      type: 'string',
      default: '0',
      describe: 'Seed of the first configuration',
      coerce: parseWholeNumber('seed', 0),
    },
    ...deviceFlag,
    ...jsonFlag,
  },
  examples: [
    ['roofline agree --peer torch --device cpu', 'relative errors by norm, exit code 1 if too large'],
    ['roofline agree --configurations 0 --wide 1 --seed 7', 'one wide configuration, drawn from seed 7'],
  ],
  async run({ configurations, wide, seed, device, json }) {
    if (configurations + wide === 0)
      throw new UsageError('Ask for one of --configurations or --wide at least.');
    const { agreeOnDevice } = await import('../peer/agree/agree-on-device.ts');
    const progress = new ProgressDisplay();
    const requests = Array.from({ length: configurations + wide }, (_, index) => ({
      seed: seed + index,
      scale: index < configurations ? ('tiny' as const) : ('wide' as const),
    }));
    const checks = await agreeOnDevice(device, requests, (text) => progress.status(text));
    progress.clear();
    const rows = checks.flatMap(({ job, result }) => agreementRows(job, result));
    if (json) printJson({ torch: checks[0]!.result.torch, rows, details: checks });
    else printTable(agreementTable(rows, checks[0]!.result.torch));
    const failures = rows.filter((row) => row['verdict'] !== 'agrees').length;
    if (failures > 0) tell(`${failures} of ${rows.length} checks exceed their tolerance.`);
    return failures > 0 ? EXIT.failure : EXIT.ok;
  },
});

const kinds = [
  ['values', 'logits and loss'],
  ['gradients', 'gradients'],
  ['parameters', 'parameters after AdamW'],
] as const;

/** For each kind the worst tensor. */
function agreementRows(job: AgreeJob, result: AgreeResult): Row[] {
  const { shape, batch, context, seed } = job;
  const configuration =
    `seed ${seed}: d ${shape.modelDimension}, ff ${shape.feedForwardDimension}, layers ${shape.layers}, ` +
    `heads ${shape.heads}, vocab ${shape.vocabularySize}, batch ${batch}, context ${context}`;
  return kinds.map(([kind, label]) => {
    const [worst, error] = Object.entries(result[kind]).reduce((a, b) =>
      b[1] > a[1] || Number.isNaN(b[1]) ? b : a,
    );
    const agrees = error <= TOLERANCES[kind];
    return {
      configuration,
      quantity: label,
      worst,
      relativeError: error,
      tolerance: TOLERANCES[kind],
      verdict: agrees ? 'agrees' : 'differs',
    };
  });
}

function agreementTable(rows: Row[], torch: string): Table {
  return {
    kind: 'table',
    id: 'agreement',
    title: `Relative error by norm against PyTorch ${torch}`,
    columns: [
      { key: 'configuration', label: 'Configuration', kind: 'text' },
      { key: 'quantity', label: 'Quantity', kind: 'text' },
      { key: 'worst', label: 'Worst', kind: 'text' },
      { key: 'relativeError', label: 'Error', kind: 'number', digits: 2, emphasis: 'strong' },
      { key: 'tolerance', label: 'Tolerance', kind: 'number', digits: 1 },
      { key: 'verdict', label: 'Verdict', kind: 'text' },
    ],
    rows,
  };
}
