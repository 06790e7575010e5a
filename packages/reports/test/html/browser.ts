import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { renderHtml } from '../../src/index.ts';
import type { Report } from '../../src/index.ts';

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const OPTIONS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--enable-logging=stderr',
  '--virtual-time-budget=5000',
  '--dump-dom',
];
/** A browser without a screen need not draw frames. */
const FRAMES = '<script>window.requestAnimationFrame = (draw) => setTimeout(draw, 1);</script>';

const HELPERS = `
  const $ = (selector) => document.querySelector(selector);
  const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));`;

export interface Browser {
  /**
   * Opens the report and runs `steps`, the body of an async function, in the page. What that returns comes back as
   * JSON. Throws where the page wrote anything to the console: it has nothing to say there but errors.
   */
  ask(report: Report, steps: string): Promise<unknown>;
  /** The same in any page. */
  askPage(html: string, steps: string): Promise<unknown>;
  close(): void;
}

/** Undefined where no Chromium is installed; throws then where ROOFLINE_NEEDS_BROWSER says that there is one. */
export function openBrowser(): Browser | undefined {
  const executable = BROWSERS.find((path) => existsSync(path));
  if (executable === undefined) {
    if (process.env['ROOFLINE_NEEDS_BROWSER'] === undefined) return undefined;
    throw new Error(
      `there is no browser (${BROWSERS.join(', ')}), and ROOFLINE_NEEDS_BROWSER is set: install chromium`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'roofline-page-'));
  const askPage = async (html: string, steps: string): Promise<unknown> => {
    const path = join(folder, 'page.html');
    const probe = probeScript(steps);
    writeFileSync(
      path,
      html.replace('</head>', `${FRAMES}</head>`).replace('</body>', () => `${probe}</body>`),
    );
    const { stdout, stderr } = await promisify(execFile)(executable, [...OPTIONS, `file://${path}`], {
      maxBuffer: 1e8,
    });
    const said = stderr.split('\n').filter((line) => line.includes('CONSOLE'));
    if (said.length > 0) throw new Error(`the console of the page has:\n${said.join('\n')}`);
    const [, answer] = /<pre id="answer">([^<]*)</.exec(stdout) ?? [];
    if (answer === undefined) throw new Error(`the page did not answer:\n${stdout.slice(0, 500)}`);
    return JSON.parse(decodeURIComponent(answer));
  };
  return {
    ask: (report, steps) => askPage(renderHtml(report), steps),
    askPage,
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function probeScript(steps: string): string {
  return `<script type="module">${HELPERS}
    const answer = await (async () => {${steps}})().catch((error) => 'threw ' + error.stack);
    const out = document.createElement('pre');
    out.id = 'answer';
    out.textContent = encodeURIComponent(JSON.stringify(answer));
    document.body.append(out);</script>`;
}
