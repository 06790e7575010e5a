import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDrawing, type Block, type Drawing, type Report } from '@roofline/reports';
import { parse } from 'yaml';
import { z } from 'zod';
import { firstIssue } from '../../check-argument.ts';
import { UsageError } from '../../errors.ts';
import { placeholders } from './placeholders.ts';

export const AUTHORED_FILE = 'report.yaml';

/** What an author may say of a report. */
const authored = z.strictObject({
  title: z.string().min(1).optional(),
  /** The id of the drawing that stands above the report. */
  lead: z.string().min(1).optional(),
  findings: z.array(z.string().min(1)).min(1).optional(),
});

/**
 * A report as the `report.yaml` of the first of `folders` that has one says it: its title, the drawing that leads, and its
 * findings. Throws UsageError, which names the file, for what it cannot say, for a number that is written out, and for a
 * placeholder or a drawing that there is none of.
 */
export function asAuthored(report: Report, folders: readonly string[]): Report {
  const path = folders.map((folder) => join(folder, AUTHORED_FILE)).find((each) => existsSync(each));
  if (path === undefined) return report;
  const { title, lead, findings } = readAuthored(path);
  const fill = placeholders(report, path);
  return {
    ...(lead === undefined ? report : withLead(report, lead, path)),
    ...(title !== undefined && { title: fill(title) }),
    ...(findings && { summary: findings.map(fill) }),
  };
}

function readAuthored(path: string): z.infer<typeof authored> {
  let content: unknown;
  try {
    content = parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new UsageError(`${path} is no YAML: ${(cause as Error).message}`, { cause });
  }
  const { data, error } = authored.safeParse(content);
  if (error) throw new UsageError(`${firstIssue(path, error)}; it may hold title, lead and findings.`);
  return data;
}

/** The drawing moves to the top; what stood there begins the first section. */
function withLead(report: Report, lead: string, path: string): Report {
  if (report.chart?.id === lead) return report;
  const drawings = report.sections.flatMap(({ blocks }) => blocks).filter((block) => isDrawing(block));
  const chart = drawings.find(({ id }) => id === lead);
  if (!chart) {
    const ids = [...(report.chart ? [report.chart] : []), ...drawings].map(({ id }) => id);
    throw new UsageError(`${path}: there is no drawing ${lead} to lead; there are: ${ids.join(', ')}.`);
  }
  const before: Drawing[] = report.chart ? [report.chart] : [];
  const rest = (blocks: readonly Block[]) => blocks.filter((block) => block !== chart);
  return {
    ...report,
    chart,
    sections: report.sections.map((section, index) => ({
      ...section,
      blocks: [...(index === 0 ? before : []), ...rest(section.blocks)],
    })),
  };
}
