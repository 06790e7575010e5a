import type { Row } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { isNamed, sentenceOf, type Answer } from '../../src/study/answer.ts';
import { studyPlan } from '../../src/study/plan.ts';
import { answeredRows } from '../fixtures/study-rows.ts';

const answers = studyPlan.flatMap(({ id, answers: of }) =>
  of.map((answer, index) => [`${id} ${index + 1}`, answer] as const),
);

/** The fixture's tables that an answer reads, and no others. */
function tablesOf({ of }: Answer): Map<string, Row[]> {
  return new Map(
    Object.entries(answeredRows)
      .filter(([name]) => isNamed(of, name))
      .map(([name, rows]) => [name, structuredClone(rows) as Row[]]),
  );
}

describe('the sentences of a study', () => {
  it('are more than one a problem', () => {
    expect(answers.length).toBeGreaterThan(studyPlan.length);
  });

  it.each(answers)('%s is said of its rows, and of nothing else', (_, answer) => {
    expect(sentenceOf(answer, tablesOf(answer))).toMatch(/^[A-Z].*\.$/);
    expect(sentenceOf(answer, new Map())).toBeNull();
  });

  it.each(answers.filter(([, { numbers }]) => numbers.length > 0))(
    '%s is dropped where its numbers were not measured',
    (_, answer) => {
      const saidWithout = answer.numbers.filter((key) => {
        const tables = tablesOf(answer);
        for (const row of [...tables.values()].flat()) row[key] = null;
        return sentenceOf(answer, tables) !== null;
      });
      expect(saidWithout).toEqual([]);
    },
  );

  it.each(answers.filter(([, { numbers }]) => numbers.length > 0))(
    '%s changes with each of its numbers',
    (_, answer) => {
      const said = sentenceOf(answer, tablesOf(answer));
      const rows = [...tablesOf(answer).values()].flat().length;
      const changesNothing = answer.numbers.filter((key) =>
        Array.from({ length: rows }, (__, index) => {
          const tables = tablesOf(answer);
          const row = [...tables.values()].flat()[index]!;
          row[key] = (row[key] as number) * 1.7 + 0.3;
          return sentenceOf(answer, tables);
        }).every((sentence) => sentence === said),
      );
      expect(changesNothing).toEqual([]);
    },
  );

  it('on attention beside PyTorch count the cells of short sequences and of long ones, which are runs of their own', () => {
    const { runs, answers: said } = studyPlan.find(({ id }) => id === 'pytorch_attention')!;
    const names = runs.filter(({ shows }) => shows.includes('beside-torch')).map(({ name }) => name);
    expect(names).toEqual(['pytorch_attention.beside_pytorch_short', 'pytorch_attention.beside_pytorch']);
    const rows = answeredRows['pytorch_attention.beside_pytorch/beside-torch']!;
    const slower = { forwardMs: 10, backwardMs: 10 };
    const [short, long] = [{ sequence: 1024, ...slower }, { sequence: 4096 }].map((more) =>
      rows.map((row): Row => ({ ...row, ...more })),
    );
    const tables = new Map([short!, long!].map((of, index) => [`${names[index]!}/beside-torch`, of]));
    const sentences = said.flatMap((answer) => sentenceOf(answer, tables) ?? []);
    expect(sentences).toHaveLength(2);
    for (const sentence of sentences) {
      expect(sentence.match(/of 2 cells/g)).toHaveLength(4);
      expect(sentence).toMatch(/compiled \S+ to \S+ of PyTorch compiled's \(slower in 1 of 2 cells\)/);
    }
  });

  /** What one of them says: of the fixture's rows, or of those of a table in place of all. */
  const said = (name: string, rows?: readonly Row[]) => {
    const [, answer] = answers.find(([each]) => each === name)!;
    const [table] = [...tablesOf(answer).keys()];
    return sentenceOf(answer, rows ? new Map([[table!, [...rows]]]) : tablesOf(answer));
  };

  it.each([
    // 8.3 over 4 and 6.3 over 3 ms.
    ['benchmarking_script 3', 'takes **2.08×** to **2.10×** the time of the forward pass'],
    // 70 over 15 and 100 over 12 ms.
    ['benchmarking_script 5', 'takes **2.20×** the time'],
    ['benchmarking_script 5', 'the first step alone takes **4.67×** to **8.33×** the median'],
    ['nsys_profile 3', 'takes **1.02×** to **1.03×** the time of a step that is not profiled'],
    // 0.56 over 0.0155, where it is the most.
    ['nsys_profile 10', '1.55 % to 1.95 % of the FLOPs of the two products and takes 16.0 % to 56.0 %'],
    ['nsys_profile 10', 'up to 36.1× its share of the FLOPs'],
    ['mixed_precision_accumulation 1', 'off by 351× as much'],
    // 38 over 26 GiB, and 41 over 29.
    [
      'memory_profiling 2',
      '**1.46×** for 2.7b, float32 from context 128 to 512 to **1.41×** for 2.7b, bfloat16',
    ],
    // 35 over 32 and 23 over 20 GiB.
    ['memory_profiling 3', 'forward **1.09×** to **1.15×**'],
    ['memory_profiling 5', '6.40× the residual stream there and 25.6× here'],
    ['memory_profiling 6', '256 MiB in 2.7b, 0.50×'],
    [
      'gradient_checkpointing 1',
      'recursive`: 0.93× the peak of a step that keeps all of its activations, in 1.20× the time',
    ],
    // 54 over 56 and 57 over 58 GiB.
    ['gradient_checkpointing 2', 'peaks of **0.96×** to **0.98×** those measured'],
    ['pytorch_attention 2', "eager **0.67×** of PyTorch plain's (slower in 0 of 1 cells)"],
    ['pytorch_attention 2', "eager **1.14×** of PyTorch compiled's (slower in 1 of 1 cells)"],
    ['pytorch_attention 5', '**1.03×** of what the formula says'],
    ['pytorch_attention 6', 'plain attention 4.00×'],
    ['torch_compile 1', 'forward **0.40×** to **0.65×**, at sequence 16384 **0.65×**'],
    ['torch_compile 2', 'forward **0.63×** (0.60× to 0.67×)'],
    ['flash_benchmarking 1', '**5.29×** (4.00× to 7.00×); at sequence 16384, d 64: 2.00 ms against 8.00 ms'],
    ['ddp 1', 'overlap 104 ms, of which communication adds 20.0 ms (19.2 %; alone it takes 33.0 ms)'],
    ['ddp 2', '91.5 % of the communication runs alongside computation, and a step takes **0.87×** the time'],
    ['optimizer_state_sharding 2', "sharded 12.0 GiB, 1.50× the 8.00 GiB of ZeRO's formula"],
    ['optimizer_state_sharding 3', '128 ms sharded and 102 ms whole (1.25×)'],
    ['fsdp 2', "fsdp 10.0 GiB, 0.83× the 12.0 GiB of ZeRO's formula"],
  ])('%s has its parts the right way round: %s', (name, part) => {
    expect(said(name)).toContain(part);
  });

  it('count cells that scatter by as much as is named, and name the one that scatters most', () => {
    const rows = [0.5, 0.51, 0.1].map((stdMs, index): Row => ({
      ...{ status: 'ok', size: 'small', context: 128 * (index + 1), mode: 'forward', medianMs: 10 },
      ...{ meanMs: 10, stdMs },
    }));
    expect(said('benchmarking_script 4', rows)).toBe(
      'The standard deviation is at most 5 % of the mean in 2 of 3 cells; the widest is 5.10 % (small, context 256, forward).',
    );
  });

  it('call no cell slower that takes as long, and compare each with the one of its dtype', () => {
    const rows = (['float32', 'bfloat16'] as const).flatMap((dtype, index) =>
      answeredRows['pytorch_attention.beside_pytorch/beside-torch']!.map((row): Row => ({
        ...{ ...row, dtype, forwardMs: 4 * (index + 1), peerForwardMs: 4 * (index + 1) },
      })),
    );
    const sentence = said('pytorch_attention 2', rows);
    expect(
      sentence!.match(/(eager|compiled) \*\*1\.00×\*\* of PyTorch \w+'s \(slower in 0 of 2 cells\)/g),
    ).toHaveLength(4);
  });

  it('compare the gradients of blocks at the longest context that all sizes have, there alone', () => {
    const row = (size: string, context: number, gradientBytes: number): Row => ({
      ...{ status: 'ok', size, context, gradientBytes, blockBytes: 2 ** 20 },
    });
    const rows = [
      ...[row('small', 128, 8 * 2 ** 20), row('small', 256, 2 ** 20), row('small', 512, 4 * 2 ** 20)],
      ...[row('large', 128, 16 * 2 ** 20), row('large', 256, 2 * 2 ** 20)],
    ];
    expect(said('memory_profiling 6', rows)).toContain(
      'at context 256: 1.00 MiB in small, 1.00×; 2.00 MiB in large, 2.00×.',
    );
  });

  it('take the lowest peak of those that recompute, though one that does not were lower', () => {
    const rows = answeredRows['gradient_checkpointing/made-again']!.map((row): Row => ({
      ...{ ...row, peakBytes: row['recompute'] === 'none' ? 2 ** 30 : row['peakBytes']! },
    }));
    expect(said('gradient_checkpointing 1', rows)).toContain('is that of `--recompute recursive`');
  });

  it('say that compiling gains less the longer the sequence only where it does', () => {
    const rows = answeredRows['torch_compile.attention/compiled-beside-eager']!;
    const turned = rows.map((row): Row => ({ ...row, sequence: row['sequence'] === 256 ? 16_384 : 256 }));
    expect([rows, turned].map((of) => said('torch_compile 1', of)!.includes('Less is gained'))).toEqual([
      true,
      false,
    ]);
  });
});
