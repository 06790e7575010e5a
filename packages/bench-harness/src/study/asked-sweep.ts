import { type AskedSweep, isSweepCommand, type SweepCommand } from '../benchmarks/benchmark-command.ts';
import { benchmarkEntries } from '../benchmarks/list.ts';
import { checkWords } from '../cli/check-words.ts';
import { buildParser } from '../cli/parser.ts';
import { UsageError } from '../errors.ts';

/** The sweep that the words after `roofline` ask for, which are read as the command line reads them; nothing is measured. */
export async function askedSweep(words: readonly string[]): Promise<AskedSweep> {
  const entry = benchmarkEntries.find(({ name, command }) => command && name === words[0]);
  const command = await entry?.command?.load();
  if (!entry?.command || !command || !isSweepCommand(command))
    throw new UsageError(`A study measures by benchmarks, and ${words[0]} is none.`);
  let asked: AskedSweep | null = null;
  const asking = {
    ...command,
    async run(args: Parameters<SweepCommand['run']>[0]) {
      asked = await command.sweepOf(args);
      return 0;
    },
  };
  const meant = {
    name: entry.name,
    group: 'measure' as const,
    summary: entry.command.summary,
    load: async () => asking,
  };
  checkWords(words, meant, command.flags);
  const known = { entries: [meant], commands: new Map([[meant.name, asking]]), meant };
  await buildParser(words, known, () => {}).parseAsync();
  return asked!;
}
