import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parsePath } from '../cli/option-values.ts';
import { printJson, printLine, tell } from '../cli/output.ts';
import { printProse, tellSentence } from '../cli/print-sentence.ts';
import { showWhile } from '../cli/show-while.ts';
import { EXIT, UsageError } from '../errors.ts';

export const reportCommand = defineCommand({
  flags: {
    out: {
      type: 'string',
      describe: 'Folder to write to; default: the first folder given',
      coerce: parsePath('out'),
    },
    png: { type: 'boolean', default: false, describe: 'Write the plots as PNG too' },
    watch: {
      type: 'boolean',
      default: false,
      describe: 'Rewrite it as results come in, as a page that reloads itself, until Ctrl-C',
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline report results/sweep', 'writes results/sweep/report.html, tables/ and plots/'],
    ['roofline report results/a results/b --out results/both', 'one report of two sweeps'],
    ['roofline report results/sweep --watch', 'a page that grows while the sweep runs'],
  ],
  async run({ folders, out, png, watch, json }) {
    if (watch) return followResults(folders as string[], out, png, json);
    const { readFolders } = await import('../records/results-folder.ts');
    const { reportOfRecords } = await import('../report/report-of-records.ts');
    const { writeReport } = await import('../report/write-report.ts');
    const { asAuthored } = await import('../report/authored/authored-report.ts');
    const paths = folders as string[];
    const { records, repeated } = readFolders(paths, tell);
    const report = asAuthored(await reportOfRecords(records), [
      ...(out === undefined ? [] : [out]),
      ...paths,
    ]);
    const { html, files } = await showWhile('Writing the report', () =>
      writeReport(report, out ?? paths[0]!, { png }),
    );
    if (repeated > 0)
      tellSentence(
        `${repeated} of the measurements were made again in another folder: the report has the later ones.`,
      );
    if (json) {
      printJson({ html, files, report });
    } else {
      for (const sentence of report.summary) printProse(sentence);
      printLine(`Report: ${html} and ${files.length - 1} files next to it`);
    }
    return EXIT.ok;
  },
});

async function followResults(
  paths: readonly string[],
  out: string | undefined,
  png: boolean,
  json: boolean,
): Promise<number> {
  if (json) throw new UsageError('--watch has no end to print as --json: leave one of them out.');
  const { watchInterruption } = await import('../cli/interruption.ts');
  const { watchReport } = await import('../report/watch-report.ts');
  using interruption = watchInterruption();
  let isAnnounced = false;
  await watchReport({
    ...{ paths, png, out: out ?? paths[0]!, signal: interruption.signal },
    onWritten({ html }, cells) {
      if (!isAnnounced) printLine(`Report: ${html}, rewritten as results come in; Ctrl-C ends it`);
      isAnnounced = true;
      tell(`${cells} ${cells === 1 ? 'cell' : 'cells'}`);
    },
    onHindrance: (message) => tell(`Waiting: ${message}`),
  });
  return EXIT.ok;
}
