import type { Row, Table } from '@roofline/reports';
import { TOLERANCES, type AgreeJob, type AgreeResult } from '../peer/agree/agree-job.ts';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parseWholeNumber } from '../cli/option-values.ts';
import { printJson } from '../cli/output.ts';
import { printSentence } from '../cli/print-sentence.ts';
import { printTable } from '../cli/print-table.ts';
import { listSome } from '../report/values-in-words.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { EXIT, UsageError } from '../errors.ts';
import { peerChoice } from '../cli/flags/peer-flag.ts';
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
    using progress = new ProgressDisplay();
    const requests = Array.from({ length: configurations + wide }, (_, index) => ({
      seed: seed + index,
      scale: index < configurations ? ('tiny' as const) : ('wide' as const),
    }));
    const checks = await agreeOnDevice(device, requests, (...status) => progress.status(...status));
    progress.clear();
    const rows = checks.flatMap(({ job, result }) => agreementRows(job, result));
    const { torch } = checks[0]!.result;
    const failures = rows.filter((row) => row['verdict'] !== 'agrees');
    const verdict = verdictOf(rows, failures, torch);
    if (json) printJson({ torch, rows, details: checks, verdict });
    else {
      printTable(agreementTable(rows, torch));
      printSentence(verdict);
    }
    return failures.length > 0 ? EXIT.failure : EXIT.ok;
  },
});

function verdictOf(rows: readonly Row[], failures: readonly Row[], torch: string): string {
  if (failures.length === 0)
    return `Agrees with PyTorch ${torch}: all ${rows.length} errors are within tolerance.`;
  const phrases = failures.map(({ configuration, worst }) => `${worst} of ${configuration}`);
  return (
    `Differs from PyTorch ${torch}: ${failures.length} of ${rows.length} errors exceed their tolerance, ` +
    `${listSome(phrases)}.`
  );
}

const kinds = [
  ['values', 'logits and loss'],
  ['gradients', 'gradients'],
  ['parameters', 'parameters after AdamW'],
] as const;

/** For each kind the worst tensor. */
function agreementRows(job: AgreeJob, result: AgreeResult): Row[] {
  const { shape, batch, context, seed } = job;
  const dimensions =
    `d ${shape.modelDimension}, ff ${shape.feedForwardDimension}, layers ${shape.layers}, ` +
    `heads ${shape.heads}, vocab ${shape.vocabularySize}, batch ${batch}, context ${context}`;
  return kinds.map(([kind, label]) => {
    const [worst, error] = Object.entries(result[kind]).reduce((a, b) =>
      b[1] > a[1] || Number.isNaN(b[1]) ? b : a,
    );
    const agrees = error <= TOLERANCES[kind];
    return {
      configuration: `seed ${seed}`,
      dimensions,
      quantity: label,
      worst,
      relativeError: error,
      tolerance: TOLERANCES[kind],
      verdict: agrees ? 'agrees' : 'differs',
    };
  });
}

function agreementTable(rows: Row[], torch: string): Table {
  const models = new Map(rows.map(({ configuration, dimensions }) => [configuration, dimensions]));
  return {
    kind: 'table',
    id: 'agreement',
    title: `Relative error by norm against PyTorch ${torch}`,
    caption: [...models].map(([model, dimensions]) => `${model}: ${dimensions}`).join('\n'),
    columns: [
      { key: 'configuration', label: 'Model', kind: 'text' },
      { key: 'quantity', label: 'Quantity', kind: 'text' },
      { key: 'worst', label: 'Worst', kind: 'text', overflow: 'shorten' },
      { key: 'relativeError', label: 'Error', kind: 'number', digits: 2, emphasis: 'strong' },
      { key: 'tolerance', label: 'Tolerance', kind: 'number', digits: 1 },
      { key: 'verdict', label: 'Verdict', kind: 'text', emphasis: 'strong' },
    ],
    rows,
  };
}
