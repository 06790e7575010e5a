import { defineCommand, jsonFlag } from '../cli/command.ts';
import { choiceOf } from '../cli/flags/choices.ts';
import { parseList, parsePath, parseRate, parseWholeNumber } from '../cli/option-values.ts';
import { printJson, printLine, tell } from '../cli/output.ts';
import { printProse } from '../cli/print-sentence.ts';
import { printTable } from '../cli/print-table.ts';
import { EXIT, UsageError } from '../errors.ts';
import { modelAttentions } from '../attention/kinds.ts';
import { executions } from '../execution/kinds.ts';
import { logitsModes } from '../memory-saving/kinds.ts';
import { dtypes } from '../measuring/ceilings.ts';
import { chooseModels, modelFlags, sizeFlag } from '../model/flags.ts';
import { dtypeSynonyms } from '../parameters/dtype-synonyms.ts';
import { machineNames, recomputations } from '../plan/kinds.ts';

const count = (flag: string, describe: string) =>
  ({ type: 'string', describe, coerce: parseWholeNumber(flag, 1) }) as const;

const rate = (flag: string, unit: string, describe: string) =>
  ({ type: 'string', describe, coerce: parseRate(flag, unit) }) as const;

export const planCommand = defineCommand({
  flags: {
    ...modelFlags,
    size: { ...sizeFlag('8b'), describe: 'One of the presets' },
    model: {
      ...modelFlags.model,
      describe: 'A model of Hugging Face instead: folder, or file of its config.json',
    },
    context: { ...count('context', 'Tokens of a sequence'), default: '8192' },
    batch: { ...count('batch', 'Sequences for each GPU'), defaultDescription: '1' },
    sequences: count('sequences', 'Sequences of the whole step instead, which may be fewer than GPUs'),
    gpus: { ...count('gpus', 'GPUs to divide a step over'), default: '8' },
    'nodes-of': count('nodes-of', 'GPUs of a node; all are in one if not given'),
    link: rate('link', 'B/s', 'What each GPU sends to other nodes, as 50GB/s'),
    dtype: {
      ...choiceOf('dtype', dtypes, dtypeSynonyms),
      default: 'bfloat16',
      describe: 'Precision of the arithmetic',
    },
    attention: {
      ...choiceOf('attention', modelAttentions),
      default: 'flash',
      describe: 'Attention of the model',
    },
    execution: { ...choiceOf('execution', executions), default: 'compiled', describe: 'How a step runs' },
    recompute: {
      ...choiceOf('recompute', recomputations),
      default: 'none',
      describe: 'What of each layer is made again in the backward pass',
    },
    logits: {
      ...choiceOf('logits', logitsModes),
      default: 'whole',
      describe: 'Logits of all tokens, or of a chunk at a time',
    },
    machine: {
      ...choiceOf('machine', machineNames),
      default: 'h200',
      describe: 'Whose measurements a plan is made of',
    },
    records: {
      type: 'string',
      describe: 'Folders of records to make it of instead: of e2e, allreduce and ddp',
      coerce: parseList('records'),
    },
    peak: rate('peak', 'FLOP/s', 'What products reach, in place of the measured ceiling, as 990TFLOP/s'),
    copy: rate('copy', 'B/s', 'What a copy reads and writes, in place of the measured ceiling, as 3TB/s'),
    memory: rate('memory', 'B', "A GPU's, in place of that of the machine, as 80GB"),
    out: { type: 'string', describe: 'Folder to write a report to, with plots', coerce: parsePath('out') },
    ...jsonFlag,
  },
  examples: [
    [
      'roofline plan --size 8b --context 8192 --gpus 64 --nodes-of 8 --link 50GB/s',
      'every layout, the best first',
    ],
    [
      'roofline plan --model models/qwen --context 4096 --gpus 8',
      "a model of Hugging Face's, of its config alone",
    ],
    [
      'roofline plan --size 8b --gpus 2 --recompute block --out results/plan',
      'a report with plots up to 16,384 GPUs',
    ],
    [
      'roofline plan --size 8b --context 131072 --sequences 1 --gpus 8 --recompute block --logits chunked',
      'one sequence that no GPU has room for',
    ],
    [
      'roofline plan --size xl --context 512 --batch 4 --gpus 2 --records results/e2e,results/allreduce',
      'of your own records',
    ],
  ],
  async run(args) {
    const { chooseMachine } = await import('../plan/choose-machine.ts');
    const { planOf } = await import('../plan/plan.ts');
    const { planJson } = await import('../plan/report/plan-json.ts');
    const { planReport, findings } = await import('../plan/report/plan-report.ts');
    const { byHandTables } = await import('../plan/report/by-hand-tables.ts');
    const { boundTable, layoutTable, memoryTable } = await import('../plan/report/tables.ts');
    const models = await chooseModels(args, '8b');
    if (models.length > 1) throw new UsageError('`roofline plan` plans for one size at a time.');
    const { gpus, context, dtype, attention, execution, recompute, logits, link = null } = args;
    const batch = batchOf(args);
    const { machine, records, peak, copy, memory } = args;
    const plan = planOf(await chooseMachine(machine, records), {
      ...{ model: models[0]!, gpus, context, batch, dtype, attention, execution, recompute, logits },
      ...{ perNode: args['nodes-of'] ?? gpus, linkBytesPerSecond: link, given: { peak, copy, memory } },
    });
    const createdAt = new Date().toISOString();
    if (args.json) printJson(planJson(plan));
    else {
      const tables = [layoutTable(plan), memoryTable(plan), boundTable(plan), ...byHandTables(plan)];
      for (const table of tables) {
        printTable(table);
        printLine();
      }
      for (const finding of findings(plan)) printProse(finding);
    }
    if (args.out === undefined) return EXIT.ok;
    const { writeReport } = await import('../report/write-report.ts');
    const { html } = await writeReport(planReport(plan, createdAt), args.out);
    tell(`Report: ${html}`);
    return EXIT.ok;
  },
});

/** Sequences for each GPU. */
function batchOf({
  batch,
  sequences,
  gpus,
}: Record<'batch' | 'sequences', number | undefined> & { gpus: number }) {
  if (sequences === undefined) return batch ?? 1;
  if (batch === undefined) return sequences / gpus;
  throw new UsageError(
    '--batch and --sequences both say how many sequences a step has; leave one of them out.',
  );
}
