import { checkReport, isDrawing } from '../check/check-model.ts';
import { length, optionsOf, requireThat } from '../check/checks.ts';
import { environmentTable } from '../table/environment-table.ts';
import { ReportError } from '../model.ts';
import type { Block, Report, Section } from '../model.ts';
import { paletteVariables } from '../plot/palette.ts';
import { joinModules, readTemplate } from '../template.ts';
import type { TemplateName } from '../template.ts';
import { allocationsHtml } from './allocations.ts';
import { jsonHtml, proseHtml } from './markup.ts';
import { escapeXml } from '../text/xml.ts';
import { plotHtml } from './plot.ts';
import { FORM_ESCAPES } from './table-data.ts';
import { tableHtml } from './table.ts';
import { timelineHtml } from './timeline.ts';

/** Nothing is fetched, whatever the report says. */
const CONTENT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/** Each may override those before it. */
const STYLES: TemplateName[] = ['base.css', 'navigation.css', 'tables.css', 'charts.css', 'print.css'];

/** Findings above the fold. */
const MOST_FINDINGS = 3;

const OWN_IDS = ['top', 'environment', 'form-escapes'];

/** Options of `renderHtml`. */
export interface HtmlOptions {
  /** How often the page reloads itself, for one that is rewritten again and again; above 0. Never by default. */
  refreshSeconds?: number;
}

const htmlOptions = optionsOf({ refreshSeconds: length });

/**
 * A report as one HTML file that needs nothing else: style, script, data and plots are inside.
 *
 * @throws ReportError for ids that are not unique or cannot be anchors, and as `renderSvg` for plots.
 */
export function renderHtml(report: Report, options: HtmlOptions = {}): string {
  checkReport('renderHtml', report);
  requireThat('renderHtml', 'options', options, htmlOptions);
  const { refreshSeconds } = options;
  const refresh =
    refreshSeconds === undefined ? '' : `<meta http-equiv="refresh" content="${refreshSeconds}">\n`;
  checkIds(report);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refresh}<meta http-equiv="Content-Security-Policy" content="${CONTENT_POLICY}">
<title>${escapeXml(report.title)}</title>
<style>
${paletteVariables()}${STYLES.map(readTemplate).join('')}</style>
</head>
<body id="top">
${navigationHtml(report)}
<main>
${headerHtml(report)}
${report.sections.map(sectionHtml).join('\n')}
${environmentHtml(report)}
</main>
<script type="application/json" id="form-escapes">${jsonHtml(FORM_ESCAPES)}</script>
${scriptsHtml(report)}
</body>
</html>
`;
}

/** Each script is a module of its own, but for those of the charts, which build on `chart.js`. */
function scriptsHtml(report: Report): string {
  const modules: TemplateName[][] = [['theme.js'], ['navigation.js'], ['tables.js'], ['plots.js']];
  const hasCharts = report.sections.some(({ blocks }) =>
    blocks.some(({ kind }) => kind === 'timeline' || kind === 'allocations'),
  );
  if (hasCharts) modules.push(['chart.js', 'timeline.js', 'allocations.js']);
  return modules.map((names) => `<script type="module">\n${joinModules(names)}</script>`).join('\n');
}

function navigationHtml(report: Report): string {
  const link = (id: string, title: string) => `<a href="#${escapeXml(id)}">${escapeXml(title)}</a>`;
  const items = chapters(report.sections).map(([{ id, title }, ...parts]) => {
    const list = parts.map((part) => `<li>${link(part.id, part.title)}</li>`).join('');
    return `<li>${link(id, title)}${list && `<ul>${list}</ul>`}</li>`;
  });
  if (report.environment.length > 0) items.push(`<li>${link('environment', 'Environment')}</li>`);
  return `<nav class="sections" aria-label="Sections">
<ul><li><a href="#top">Summary</a></li>${items.join('')}</ul>
<button type="button" class="theme" aria-label="Switch between light and dark">
<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" stroke-width="1.5"/><path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor"/></svg>
</button>
</nav>`;
}

/** Each section of level 1 with those of level 2 after it. */
function chapters(sections: readonly Section[]): [Section, ...Section[]][] {
  const found: [Section, ...Section[]][] = [];
  for (const section of sections) {
    if (section.level === 2 && found.length > 0) found.at(-1)!.push(section);
    else found.push([section]);
  }
  return found;
}

function headerHtml(report: Report): string {
  const subtitle = report.subtitle ? `<p class="subtitle">${proseHtml(report.subtitle)}</p>` : '';
  const created = escapeXml(report.createdAt);
  const readable = created.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?Z$/, '$1 $2 UTC');
  return `<header>
<h1>${escapeXml(report.title)}</h1>
${subtitle}
<p class="created"><time datetime="${created}">${readable}</time></p>
${report.chart ? plotHtml(report.chart) : ''}
${findingsHtml(report.summary)}
</header>`;
}

function findingsHtml(findings: readonly string[]): string {
  const list = (sentences: readonly string[], name: string) =>
    `<ul class="${name}">${sentences.map((sentence) => `<li>${proseHtml(sentence)}</li>`).join('')}</ul>`;
  if (findings.length === 0) return '';
  const more = findings.slice(MOST_FINDINGS);
  const rest =
    more.length === 0
      ? ''
      : `<details class="more"><summary>${more.length} more</summary>${list(more, 'summary')}</details>`;
  return list(findings.slice(0, MOST_FINDINGS), 'findings') + rest;
}

function sectionHtml({ id, title, level = 1, folded = false, text = [], blocks }: Section): string {
  const content = [
    ...text.map((paragraph) => `<p>${proseHtml(paragraph)}</p>`),
    ...groupPlots(blocks).map((group) =>
      group.length === 1
        ? blockHtml(group[0]!)
        : `<div class="plots">${group.map(blockHtml).join('\n')}</div>`,
    ),
  ];
  const anchor = `<a class="anchor" href="#${escapeXml(id)}" aria-label="Link to ${escapeXml(title)}">#</a>`;
  const heading = level === 2 ? 'h3' : 'h2';
  if (folded) return foldedHtml(id, title, content);
  return [
    `<section id="${escapeXml(id)}"${level === 2 ? ' class="part"' : ''}>`,
    `<${heading}>${escapeXml(title)}${anchor}</${heading}>`,
    ...content,
    '</section>',
  ].join('\n');
}

function foldedHtml(id: string, title: string, content: readonly string[]): string {
  return [
    `<section id="${escapeXml(id)}" class="folded"><details><summary><h2>${escapeXml(title)}</h2></summary>`,
    ...content,
    '</details></section>',
  ].join('\n');
}

/** Consecutive plots are side by side where there is room. */
function groupPlots(blocks: readonly Block[]): Block[][] {
  const groups: Block[][] = [];
  for (const block of blocks) {
    const group = groups.at(-1);
    if (block.kind === 'plot' && group?.[0]!.kind === 'plot') group.push(block);
    else groups.push([block]);
  }
  return groups;
}

function blockHtml(block: Block): string {
  if (block.kind === 'table') return tableHtml(block);
  if (isDrawing(block)) return plotHtml(block);
  if (block.kind === 'timeline') return timelineHtml(block);
  if (block.kind === 'allocations') return allocationsHtml(block);
  return `<aside class="${block.tone ?? 'info'}"><p>${proseHtml(block.text)}</p></aside>`;
}

function environmentHtml(report: Report): string {
  if (report.environment.length === 0) return '';
  return foldedHtml('environment', 'Environment', [tableHtml(environmentTable(report), false)]);
}

function checkIds(report: Report): void {
  const taken = new Set(OWN_IDS);
  const blocks = [report.chart ?? [], ...report.sections.map((section) => section.blocks)].flat();
  const ids = [...report.sections, ...blocks].flatMap((part) => ('id' in part ? [part.id] : []));
  for (const id of ids) {
    if (!/^[\w:.-]+$/.test(id)) {
      throw new ReportError(`'${id}' cannot be an anchor: ids take letters, digits, '_', '-', '.' and ':'`);
    }
    if (taken.has(id)) {
      throw new ReportError(
        `two parts of the report have the id '${id}' ('${OWN_IDS.join("' and '")}' are taken)`,
      );
    }
    taken.add(id);
  }
}
