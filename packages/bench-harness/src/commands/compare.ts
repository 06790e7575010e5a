import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parseLimit } from '../cli/option-values.ts';
import { printJson, tell } from '../cli/output.ts';
import { printSentence } from '../cli/print-sentence.ts';
import { printTable } from '../cli/print-table.ts';
import { EXIT, UsageError } from '../errors.ts';

export const compareCommand = defineCommand({
  flags: {
    'fail-over': {
      type: 'string',
      describe:
        'Exit with 1 when times rise by more than this beyond noise (5% or 1.05), peak memory does, or a cell is lost',
      coerce: parseLimit('fail-over'),
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline compare results/main results/branch', 'ratios with their 95 % intervals'],
    ['roofline compare results/main results/branch --fail-over 5%', 'a gate for continuous integration'],
  ],
  async run({ before, after, 'fail-over': limit, json }) {
    const { recordsIn } = await import('../records/results-folder.ts');
    const {
      compareRecords,
      comparisonSummary,
      comparisonTable,
      differences,
      lostCells,
      regressions,
      unpairedOf,
    } = await import('../report/compare.ts');
    const [old, recent] = [recordsIn(before as string, tell), recordsIn(after as string, tell)];
    const comparisons = await compareRecords(old, recent);
    if (comparisons.length === 0) {
      const { keptApartBy } = await import('../report/compared-parameters.ts');
      const reason = keptApartBy(old, recent);
      throw new UsageError(
        `${String(before)} and ${String(after)} have no cell in common${reason && `: ${reason}`}. ` +
          'Compare sweeps of the same benchmark and parameters; device and settings may differ.',
      );
    }
    const summary = comparisonSummary(comparisons, unpairedOf([...old, ...recent], comparisons).length);
    const different = differences(comparisons);
    const table = comparisonTable(comparisons);
    const lost = await lostCells(old, comparisons);
    const worse = limit === undefined ? [] : [...regressions(comparisons, limit), ...lost];
    if (json) {
      printJson({
        rows: table.rows,
        differences: different,
        summary,
        failOver: limit ?? null,
        regressions: worse,
      });
    } else {
      // First, what else may explain the ratios.
      for (const sentence of different) printSentence(sentence);
      printTable(table);
      for (const sentence of summary) printSentence(sentence);
    }
    const { GITHUB_STEP_SUMMARY: summaryPath } = process.env;
    if (summaryPath) {
      const { appendStepSummary } = await import('../report/step-summary.ts');
      const sentences = [...different, ...summary];
      appendStepSummary(summaryPath, {
        table,
        sentences,
        limit: limit === undefined ? null : `${limit}×`,
        worse,
      });
    }
    if (worse.length > 0) {
      const cells = comparisons.length + lost.length;
      tell(`${worse.length} of ${cells} cells got worse by more than ${limit}× allows:`);
      for (const { cell, reason } of worse) tell(`  ${cell}: ${reason}`);
    }
    return worse.length > 0 ? EXIT.failure : EXIT.ok;
  },
});
