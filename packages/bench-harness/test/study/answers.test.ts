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
});
