import { benchmarkEntries } from '../benchmarks/list.ts';
import type { CommandEntry } from '../cli/command.ts';

/** In the order that each has in its group of `roofline --help`. */
export const commandEntries: readonly CommandEntry[] = [
  {
    name: 'demo',
    group: 'start',
    summary: 'A small end-to-end benchmark on the best device here, with a report to look at',
    load: async () => (await import('./demo.ts')).demoCommand,
  },
  {
    name: 'doctor',
    group: 'start',
    summary: 'What is found on this machine, what is missing, and how to get it',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    name: 'train',
    group: 'train',
    summary:
      'Train a model on a text or a file of tokens, with checkpoints that it goes on from: --data text.txt --out runs/a',
    load: async () => (await import('./train.ts')).trainCommand,
  },
  {
    name: 'tokenize',
    group: 'train',
    positionals: '<texts..>',
    summary: 'Make a file of tokens of texts, to train on: a.txt b.txt --out data.bin',
    load: async () => (await import('./tokenize.ts')).tokenizeCommand,
  },
  {
    name: 'generate',
    group: 'train',
    summary: "Let a trained model go on with a text: --checkpoint runs/a --prompt 'The roof'",
    load: async () => (await import('./generate.ts')).generateCommand,
  },
  ...benchmarkEntries.flatMap(({ name, command }) =>
    command ? [{ name, group: 'measure' as const, ...command }] : [],
  ),
  {
    name: 'study',
    group: 'measure',
    summary: 'Measure every problem of the assignment, in slices where time is short, into one document',
    load: async () => (await import('./study.ts')).studyCommand,
  },
  {
    name: 'report',
    group: 'look',
    positionals: '<folders..>',
    summary: 'Make a page, tables and plots of the records of one folder or several',
    load: async () => (await import('./report.ts')).reportCommand,
  },
  {
    name: 'compare',
    group: 'check',
    positionals: '<before> <after>',
    summary: 'Contrast the records of two folders (or .jsonl files) cell by cell',
    load: async () => (await import('./compare.ts')).compareCommand,
  },
  {
    name: 'model',
    group: 'look',
    summary: 'Parameters, FLOPs and bytes of a model, without building it; without flags, the presets',
    load: async () => (await import('./model.ts')).modelCommand,
  },
  {
    name: 'plan',
    group: 'look',
    summary:
      'Memory, communication and time of a step on many GPUs before there are any: every layout, the best first',
    load: async () => (await import('./plan.ts')).planCommand,
  },
  {
    name: 'agree',
    group: 'check',
    summary: 'Check that random small models agree with PyTorch: values, gradients, parameters after AdamW',
    load: async () => (await import('./agree.ts')).agreeCommand,
  },
  {
    name: 'launch',
    group: 'set-up',
    positionals: '[script..]',
    handsWordsOn: true,
    summary: 'Start ranks of a script that meet: --nproc 4 -- train.js ARGS',
    load: async () => (await import('./launch.ts')).launchCommand,
  },
  {
    name: 'bundle',
    group: 'set-up',
    summary:
      'Pack Node, the built packages and the GPU tests to run on a Linux host with neither Node nor network',
    load: async () => (await import('./bundle.ts')).bundleCommand,
  },
];
