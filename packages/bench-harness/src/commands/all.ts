import { benchmarkEntries } from '../benchmarks/registry.ts';
import type { CommandEntry } from '../cli/command.ts';

/** In the order of `roofline --help`. */
export const commandEntries: readonly CommandEntry[] = [
  ...benchmarkEntries.flatMap(({ name, command }) => (command ? [{ name, ...command }] : [])),
  {
    name: 'report',
    positionals: '<folders..>',
    summary: 'Make a page, tables and plots of the records of one folder or several',
    load: async () => (await import('./report.ts')).reportCommand,
  },
  {
    name: 'compare',
    positionals: '<before> <after>',
    summary: 'Contrast the records of two folders (or .jsonl files) cell by cell',
    load: async () => (await import('./compare.ts')).compareCommand,
  },
  {
    name: 'model',
    summary: 'Parameters, FLOPs and bytes of a model, without building it; without flags, the presets',
    load: async () => (await import('./model.ts')).modelCommand,
  },
  {
    name: 'doctor',
    summary: 'What is found on this machine, what is missing, and how to get it',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    name: 'agree',
    summary: 'Check that random small models agree with PyTorch: values, gradients, parameters after AdamW',
    load: async () => (await import('./agree.ts')).agreeCommand,
  },
  {
    name: 'launch',
    positionals: '[script..]',
    handsWordsOn: true,
    summary: 'Start ranks of a script that meet: --nproc 4 -- train.js ARGS',
    load: async () => (await import('./launch.ts')).launchCommand,
  },
  {
    name: 'demo',
    summary: 'A small end-to-end benchmark on the best device here, with a report to look at',
    load: async () => (await import('./demo.ts')).demoCommand,
  },
  {
    name: 'bundle',
    summary:
      'Pack Node, the built packages and the GPU tests to run on a Linux host with neither Node nor network',
    load: async () => (await import('./bundle.ts')).bundleCommand,
  },
];
