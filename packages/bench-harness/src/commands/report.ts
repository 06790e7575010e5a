import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parsePath } from '../cli/option-values.ts';
import { printJson, printLine, tell } from '../cli/output.ts';
import { printProse, tellSentence } from '../cli/print-sentence.ts';
import { showWhile } from '../cli/show-while.ts';
import { EXIT } from '../errors.ts';

export const reportCommand = defineCommand({
  flags: {
    out: {
      type: 'string',
      describe: 'Folder to write to; default: the first folder given',
      coerce: parsePath('out'),
    },
    png: { type: 'boolean', default: false, describe: 'Write the plots as PNG too' },
    ...jsonFlag,
  },
  examples: [
    ['roofline report results/sweep', 'writes results/sweep/report.html, tables/ and plots/'],
    ['roofline report results/a results/b --out results/both', 'one report of two sweeps'],
  ],
  async run({ folders, out, png, json }) {
    const { readFolders } = await import('../records/results-folder.ts');
    const { reportOfRecords } = await import('../report/report-of-records.ts');
    const { writeReport } = await import('../report/write-report.ts');
    const paths = folders as string[];
    const { records, repeated } = readFolders(paths, tell);
    const report = await reportOfRecords(records);
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
