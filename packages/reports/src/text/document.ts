import { callable, optionsOf, requireThat, text } from '../check/checks.ts';
import { isPicture } from '../check/check-model.ts';
import type { Block, Picture, Report, Table } from '../model.ts';
import { blockTable } from '../table/block-table.ts';
import { environmentTable } from '../table/environment-table.ts';
import { proseIn, type ProseForm } from './prose.ts';

/** Options of documents on paper. */
export interface DocumentOptions {
  /** Where a picture is, relative to the document; without it, or where it gives null, its table is written. */
  plotPath?: (picture: Picture) => string | null;
}

const documentOptions = optionsOf({ plotPath: callable });

export function checkDocumentOptions(owner: string, options: DocumentOptions): void {
  requireThat(owner, 'options', options, documentOptions);
}

/** How a markup language writes a document. */
export interface DocumentForm {
  readonly prose: ProseForm;
  /** All before the first paragraph; the texts are prose. */
  begin(report: Report, write: (prose: string) => string): string;
  heading(level: 1 | 2, title: string, id: string): string;
  paragraph(content: string): string;
  bullets(contents: readonly string[]): string;
  table(table: Table): string;
  figure(path: string, picture: Picture, caption: string): string;
  readonly end: string;
}

/** A report as a document: its findings, its sections with tables and figures, and where it was measured. */
export function writeDocument(
  owner: string,
  report: Report,
  form: DocumentForm,
  options: DocumentOptions,
): string {
  const write = (prose: string) => proseIn(form.prose, prose);
  const block = (each: Block): string => {
    if (each.kind === 'note') return form.paragraph(write(each.text));
    const path = isPicture(each) ? (options.plotPath?.(each) ?? null) : null;
    if (!isPicture(each) || path === null) return form.table(blockTable(each));
    requireThat(owner, `plotPath of '${each.id}'`, path, text);
    return form.figure(path, each, write([each.title, each.caption].filter(Boolean).join('. ')));
  };
  const parts = [
    form.begin(report, write),
    ...(report.summary.length > 0 ? [form.bullets(report.summary.map(write))] : []),
    ...(report.chart ? [block(report.chart)] : []),
    ...report.sections.flatMap((section) => [
      form.heading(section.level ?? 1, section.title, section.id),
      ...(section.text ?? []).map((paragraph) => form.paragraph(write(paragraph))),
      ...section.blocks.map(block),
    ]),
    ...(report.environment.length > 0
      ? [form.heading(1, 'Environment', 'environment'), form.table(environmentTable(report))]
      : []),
    form.end,
  ];
  return parts.filter((part) => part !== '').join('\n');
}
