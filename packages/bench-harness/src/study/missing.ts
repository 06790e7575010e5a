import type { Note, Row, Section, Table } from '@roofline/reports';
import { listSome, statusInWords } from '../report/values-in-words.ts';
import { cellsLeft } from './measure-runs.ts';
import { commandOf, expectedCellMs, type PlannedRun } from './planned-runs.ts';

/** How much of a study there is. */
export function stateOf(runs: readonly PlannedRun[], fresh = false) {
  const cells = runs.flatMap((run) => run.cells);
  return {
    planned: cells.length,
    settled: cells.filter(({ isSettled }) => isSettled).length,
    /** Of those, measured by other code. */
    older: cells.filter(({ isSettled, isOlder }) => isSettled && isOlder).length,
    /** Expected for what is left. */
    leftMs: runs.reduce((sum, run) => sum + cellsLeft(run, fresh).length * expectedCellMs(run), 0),
  };
}

/** Warns of records of other code: by their runs, unless all of them are. */
export function olderNotes(runs: readonly PlannedRun[]): Note[] {
  const { settled, older } = stateOf(runs);
  if (older === 0) return [];
  const byRun = runs.flatMap((run) => {
    const count = stateOf([run]).older;
    return count > 0 ? [`${run.run.name} (${count})`] : [];
  });
  const which =
    older === settled
      ? `All ${settled} cells are of another state of the code than this one.`
      : `Cells of another state of the code than this one: ${byRun.join(', ')}.`;
  return [
    { kind: 'note', tone: 'warning', text: `${which} \`roofline study --fresh\` measures them again.` },
  ];
}

/** What has no result, why, and the command that makes it. */
export function missingSection(runs: readonly PlannedRun[]): Section {
  const rows = runs.flatMap((run): Row[] => {
    const missing = run.cells.filter(({ isSettled }) => !isSettled);
    const command = commandOf(run);
    if (run.hindrance !== null && run.records.length === 0)
      return [{ run: run.run.name, cells: null, minutes: null, which: run.hindrance, command }];
    if (missing.length === 0) return [];
    const which = listSome(
      missing.map(({ name, record }) => (record ? `${name} (${statusInWords(record.status)})` : name)),
    );
    const minutes = (missing.length * expectedCellMs(run)) / 60_000;
    return [{ run: run.run.name, cells: missing.length, minutes, which, command }];
  });
  const { planned, settled } = stateOf(runs);
  return {
    ...{ id: 'missing', title: 'What is missing' },
    text: [`${settled} of ${planned} cells are measured.`],
    blocks:
      rows.length === 0
        ? []
        : [
            {
              ...{ kind: 'table', id: 'missing-cells', title: 'Cells without a result' },
              caption: 'Each command goes on with what its folder holds.',
              columns: [
                { key: 'run', label: 'Run', kind: 'text' },
                { key: 'cells', label: 'Cells', kind: 'number', digits: 1 },
                { key: 'minutes', label: 'Expected', kind: 'number', unit: 'min', digits: 2 },
                { key: 'which', label: 'Which', kind: 'text' },
                { key: 'command', label: 'Command', kind: 'text' },
              ],
              rows,
            },
          ],
  };
}

/** The runs of a plan, how many cells each has, and how long those that are left are expected to take. */
export function planTable(runs: readonly PlannedRun[], fresh: boolean): Table {
  return {
    ...{ kind: 'table', id: 'plan', title: 'Plan of the study' },
    columns: [
      { key: 'problem', label: 'Problem', kind: 'text' },
      { key: 'run', label: 'Run', kind: 'text' },
      { key: 'wanted', label: 'Turn', kind: 'text', align: 'right' },
      { key: 'cells', label: 'Cells', kind: 'text', align: 'right' },
      { key: 'measured', label: 'Measured', kind: 'text', align: 'right' },
      { key: 'minutes', label: 'Left', kind: 'number', unit: 'min', digits: 2 },
      { key: 'command', label: 'Command', kind: 'text', overflow: 'shorten', detail: true },
    ],
    rows: runs.map((run) => {
      const { planned, settled, leftMs } = stateOf([run], fresh);
      return {
        ...{ problem: run.problem.id, run: run.run.name, wanted: run.run.wanted },
        ...{ cells: planned, measured: settled, minutes: leftMs / 60_000, command: commandOf(run) },
        ...(run.hindrance !== null && { status: 'not-available' as const, error: run.hindrance }),
      };
    }),
  };
}
