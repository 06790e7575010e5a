import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Workshop } from '../handbook/workshop.ts';

interface Workflow {
  env: Record<string, string>;
  jobs: { compare: { steps: { name?: string; run?: string }[] } };
}

const workflow = parse(readFileSync('.github/workflows/compare.yml', 'utf8')) as Workflow;
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
const { steps } = workflow.jobs.compare;
const linesOf = (name: string) => steps.find((step) => step.name === name)!.run!;

/** Only so many steps: what is tested is the commands, not the machine. */
const env: Record<string, string> = {
  ...workflow.env,
  BENCHMARK: workflow.env['BENCHMARK']!.replace(/--(warmup|steps) \d+/g, '--$1 3'),
};

describe('the workflow that compares a pull request with its base', () => {
  const runnerTemp = mkdtempSync(join(tmpdir(), 'roofline-compare-'));
  const clone = new Workshop(join(runnerTemp, 'clone'));
  const summary = join(runnerTemp, 'summary.md');
  const run = (name: string) =>
    clone.run(
      [...Object.entries({ ...env, RUNNER_TEMP: runnerTemp, GITHUB_STEP_SUMMARY: summary })]
        .map(([key, value]) => `export ${key}='${value}'`)
        .join('\n') + `\n${linesOf(name)}`,
    );

  beforeAll(() => {
    clone.addNpmRun();
    mkdirSync(join(runnerTemp, 'base'));
  });
  afterAll(() => rmSync(runnerTemp, { recursive: true }));

  it('builds both by a script that there is', () => {
    const called = [...linesOf('Build both').matchAll(/npm run (\w+)/g)].map(([, name]) => name!);
    expect(called).toEqual(['demo', 'demo']);
    expect(scripts).toHaveProperty('demo');
  });

  it('measures both, compares them, and writes the table on the page of the run', () => {
    run('Measure both');
    const records = ['before', 'after'].map((folder) => join(runnerTemp, folder, 'results.jsonl'));
    for (const path of records) expect(readFileSync(path, 'utf8').trim().split('\n')).toHaveLength(2);
    env['FAIL_OVER'] = '10000%';
    expect(run('Compare')).toContain('After over before');
    expect(readFileSync(summary, 'utf8')).toMatch(/\| .*train-step/);
  });

  it('fails where a cell is lost', () => {
    const path = join(runnerTemp, 'after/results.jsonl');
    writeFileSync(path, readFileSync(path, 'utf8').split('\n', 1)[0]! + '\n');
    expect(() => run('Compare')).toThrow(/^exit 1:[^]*1 of 2 cells got worse/);
  });
});
