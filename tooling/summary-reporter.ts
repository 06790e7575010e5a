import { appendFileSync, existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

/** Writes one line for each package that was tested to the file in ROOFLINE_TEST_SUMMARY, which `npm test` prints. */
export default class SummaryReporter implements Reporter {
  readonly #start = performance.now();

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const results = modules
      .flatMap((module) => [...module.children.allTests()])
      .map((test) => test.result().state);
    const count = (state: string) => results.filter((each) => each === state).length;
    const faults = modules.reduce((sum, module) => sum + module.errors().length, errors.length);
    const parts = [
      `${count('passed')} passed`,
      ...(count('skipped') > 0 ? [`${count('skipped')} skipped`] : []),
      ...(count('failed') + faults > 0 ? [`${count('failed') + faults} FAILED`] : []),
    ];
    const name = existsSync('pnpm-workspace.yaml')
      ? 'tests of the repository'
      : `tests of ${basename(process.cwd())}`;
    const seconds = Math.round((performance.now() - this.#start) / 1000);
    appendFileSync(
      process.env['ROOFLINE_TEST_SUMMARY']!,
      `  ${name.padEnd(26)} ${parts.join(', ')} (${seconds} s)\n`,
    );
  }
}
