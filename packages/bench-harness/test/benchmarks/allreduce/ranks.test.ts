import { existsSync, globSync, readFileSync } from 'node:fs';
import { diagnoseGloo } from '@roofline/collectives';
import { describe, expect, it } from 'vitest';
import { collectiveDTypes, collectiveOps, factsOf } from '../../../src/benchmarks/allreduce/operations.ts';
import type { CollectiveBackend } from '../../../src/benchmarks/allreduce/parameters.ts';
import { OwnRanks } from '../../../src/benchmarks/allreduce/ranks/own-ranks.ts';
import { cellProgram, collectiveRankProgram } from '../../../src/paths.ts';

const hasGloo = diagnoseGloo().status === 'found';

/** Ranks run by the options of the process that launches them: in a sweep, a cell's. */
async function startRanks(count: number, backend: CollectiveBackend = 'gloo'): Promise<OwnRanks> {
  const { execArgv } = process;
  process.execArgv = [...cellProgram.nodeFlags];
  try {
    return await OwnRanks.start(backend, count);
  } finally {
    process.execArgv = execArgv;
  }
}

/** Of a process that may have ended meanwhile. */
function commandLine(path: string): string {
  try {
    return readFileSync(path, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

describe.skipIf(!hasGloo)(`ranks of a cell${hasGloo ? '' : ' (skipped: Gloo is not installed)'}`, () => {
  it('run every collective in every placement and dtype, and find nothing wrong', async () => {
    const ranks = await startRanks(3);
    for (const op of collectiveOps)
      for (const dtype of op === 'allreduce' ? collectiveDTypes : (['float32'] as const))
        for (const placement of factsOf[op].placements) {
          await ranks.ask({ command: 'prepare', op, dtype, count: 71 });
          const sampled = await ranks.ask({ command: 'sample', placement, warmup: 1, iterations: 2 });
          expect(sampled.map(({ samplesMs }) => samplesMs!.length)).toEqual([2, 2, 2]);
          const checked = await ranks.ask({ command: 'check', placement });
          expect({ op, dtype, placement, wrong: checked.map(({ wrong }) => wrong) }).toEqual({
            ...{ op, dtype, placement },
            wrong: [0, 0, 0],
          });
        }
    await ranks.end();
  });

  it.runIf(existsSync('/proc/self/cmdline'))('keep their token from those who list processes', async () => {
    const ranks = await startRanks(2);
    await ranks.ask({ command: 'prepare', op: 'allreduce', dtype: 'float32', count: 1 });
    const commands = globSync('/proc/[0-9]*/cmdline').map(commandLine);
    const given = commands.flatMap((words) => words.split(collectiveRankProgram).slice(1));
    expect(given.length).toBeGreaterThanOrEqual(2);
    for (const words of given) expect(words.trim()).toMatch(/^gloo \d+$/);
    await ranks.end();
  });

  it('report what fails on one of them, with its code', async () => {
    const ranks = await startRanks(2);
    const request = { command: 'prepare', op: 'allreduce', dtype: 'float32', count: 2 ** 50 } as const;
    await expect(ranks.ask(request)).rejects.toMatchObject({ name: 'RankError', code: 'OUT_OF_MEMORY' });
    await ranks.end();
  });

  it('that end before they answer are named, with how they ended and what they said', async () => {
    const ranks = await startRanks(2, 'carrier pigeons' as CollectiveBackend);
    const request = { command: 'prepare', op: 'allreduce', dtype: 'float32', count: 4 } as const;
    await expect(ranks.ask(request)).rejects.toThrow(
      /^Rank \d ended with exit code 1: [^]*there is no backend the text "carrier pigeons"/,
    );
    await ranks.end();
  });
});
