import { readFileSync, writeFileSync } from 'node:fs';
import { type RunnerTestCase, TestRunner } from 'vitest';

/** One condition that is wrong by a little; see instrument.mjs. */
export interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly source: string;
  readonly original: string;
  readonly replacement: string;
}

/** What is known of all mutants, kept in a file from one process to the next. */
interface Findings {
  readonly mutants: readonly Mutant[];
  /** The test that saw a mutant, by its id. */
  readonly caught: Record<string, string>;
  /** Those that some test ran. */
  reached: string[];
  /** Those that ran as files of tests or sources were loaded. */
  loaded: string[];
  /** Tests that cannot be run again. */
  readonly unusable: string[];
  /** Files with a test that went on to fail after it had seen a mutant: for the rest they need a new process. */
  readonly spoiled: string[];
}

/** What instrumented code shares with whoever runs it; the names are Stryker's. */
interface Switches {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number;
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
}

const shared = globalThis as { __stryker__?: Switches; __findings__?: Findings };
const switches = (shared.__stryker__ ??= {});
const path = process.env['ROOFLINE_MUTANTS']!;

/** One process has all files of tests: what one of them has caught, the next need not look for. */
function findings(): Findings {
  return (shared.__findings__ ??= JSON.parse(readFileSync(path, 'utf8')) as Findings);
}

/**
 * Runs each test once as it is, and then once more for each mutant that it reaches and that no test before it has caught:
 * modules are loaded and compiled once for all of them.
 */
export default class MutantRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const known = findings();
    const { name, filepath } = test.file;
    const hooks = test as RunnerTestCase & { readonly onFinished?: ((context: unknown) => unknown)[] };
    if (known.spoiled.includes(filepath)) return;
    let limitMs = Infinity;
    const run = async () => {
      this['snapshotClient'].clearTest(filepath, test.id);
      try {
        await withinTime(limitMs, TestRunner.getTestFn(test)());
      } finally {
        for (const finish of (hooks.onFinished ?? []).splice(0).reverse()) await finish(test.context);
      }
    };
    const start = performance.now();
    const hits = await hitsOf(run);
    // Ranks that wait for each other do so for ever.
    limitMs = 2000 + 20 * (performance.now() - start);
    const ids = Object.keys(hits);
    known.reached = [...new Set([...known.reached, ...ids])];
    const left = ids.filter((id) => !(id in known.caught));
    if (left.length === 0) return;
    if (!(await passes(run))) {
      known.unusable.push(`${name} > ${test.name}`);
      return;
    }
    for (const id of left) {
      if (await passesWith(id, hits[id]!, run)) continue;
      known.caught[id] = `${name} > ${test.name}`;
      if (await passes(run)) continue;
      known.spoiled.push(filepath);
      return;
    }
  }

  override onAfterRunFiles(files: never[]): void {
    super.onAfterRunFiles(files);
    const known = findings();
    const loaded = Object.keys(switches.mutantCoverage?.static ?? {});
    known.loaded = [...new Set([...known.loaded, ...loaded])];
    writeFileSync(path, JSON.stringify(known));
  }
}

/** How often a run asks each mutant's condition. */
async function hitsOf(run: () => Promise<void>): Promise<Record<string, number>> {
  switches.currentTestId = 'current';
  try {
    await run();
    return switches.mutantCoverage?.perTest['current'] ?? {};
  } finally {
    switches.currentTestId = undefined;
    delete switches.mutantCoverage?.perTest['current'];
  }
}

/** A loop that a wrong condition never ends asks it more often than any other does. */
async function passesWith(id: string, hits: number, run: () => Promise<void>): Promise<boolean> {
  Object.assign(switches, { activeMutant: id, hitCount: 0, hitLimit: 100 * hits + 1000 });
  try {
    return await passes(run);
  } finally {
    Object.assign(switches, { activeMutant: undefined, hitCount: undefined });
  }
}

async function passes(run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    return false;
  }
}

async function withinTime(limitMs: number, result: unknown): Promise<void> {
  if (!(result instanceof Promise)) return;
  if (limitMs === Infinity) return await (result as Promise<void>);
  let timer: NodeJS.Timeout;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${limitMs / 1000} s`)), limitMs);
  });
  await Promise.race([result, late]).finally(() => clearTimeout(timer));
}
