import { readFileSync, writeFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, TestRunner } from 'vitest';

/** What is known of all mutants, kept in a file from one process to the next. */
interface Findings {
  /** The test that saw a mutant, by its id. */
  readonly caught: Record<string, string>;
  /** Those that some test ran. */
  reached: string[];
  /** Those that ran as files of tests or sources were loaded. */
  loaded: string[];
  /** Tests that cannot be run again. */
  readonly unusable: string[];
  /** Tests, by vitest's ids, that are through with all mutants that they reach. */
  readonly done: string[];
  /** Files all of whose tests are. */
  readonly finished: string[];
  /** The mutant that runs, and the test: if the process ends with them, the test has seen it. */
  running: { readonly id: string; readonly test: string } | null;
  /** A test that takes longer is left to a later process, in which quicker ones have left it fewer mutants. */
  readonly patienceMs: number;
}

/** What instrumented code shares with whoever runs it; the names are Stryker's. */
interface Switches {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number;
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
}

const shared = globalThis as {
  __stryker__?: Switches;
  __findings__?: Findings;
  __underTest__?: () => unknown;
};
const switches = (shared.__stryker__ ??= {});
const path = process.env['ROOFLINE_MUTANTS']!;

/** One process has all files of tests: what one of them has caught, the next need not look for. */
function findings(): Findings {
  return (shared.__findings__ ??= JSON.parse(readFileSync(path, 'utf8')) as Findings);
}

function save(): void {
  writeFileSync(path, JSON.stringify(findings()));
}

let haveMutantsRun = false;
/** Mutants leave memory behind: a process that holds so much of it leaves the rest to another one. */
const mostBytes = 3 * 2 ** 30;
/** Files with a test that went on to fail after it had seen a mutant: what is left of them needs a new process. */
const spoiled = new Set<string>();
/** Whether a test has failed that had seen none: what is left of any file needs a new process. */
let isSpoiled = false;

/**
 * Runs each test once as it is, and then once more for each mutant that it reaches and that no test before it has caught:
 * modules are loaded and compiled once for all of them.
 */
export default class MutantRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const known = findings();
    const { name, filepath } = test.file;
    const hooks = test as RunnerTestCase & { readonly onFinished?: ((context: unknown) => unknown)[] };
    if (known.done.includes(test.id)) return;
    isSpoiled ||= process.memoryUsage.rss() > mostBytes;
    if (isSpoiled || spoiled.has(filepath)) return;
    let limitMs = Infinity;
    const run = async () => {
      this['snapshotClient'].clearTest(filepath, test.id);
      try {
        await withinTime(limitMs, TestRunner.getTestFn(test));
      } finally {
        for (const finish of (hooks.onFinished ?? []).splice(0).reverse()) await finish(test.context);
      }
    };
    const start = performance.now();
    const hits = await hitsOf(run).catch((error: unknown) => {
      isSpoiled = haveMutantsRun;
      if (isSpoiled) return;
      known.done.push(test.id);
      throw error;
    });
    if (!hits) return;
    const durationMs = performance.now() - start;
    limitMs = timeLimitMs(durationMs);
    const ids = Object.keys(hits);
    known.reached = [...new Set([...known.reached, ...ids])];
    const left = ids.filter((id) => !(id in known.caught));
    if (left.length > 0 && durationMs > known.patienceMs) return;
    const title = `${name} > ${test.name}`;
    if (left.length > 0 && !(await passes(run))) known.unusable.push(title);
    else if (!(await catchMutants(left, title, hits, run))) {
      spoiled.add(filepath);
      return;
    }
    known.done.push(test.id);
    save();
  }

  override onAfterRunFiles(files: never[]): void {
    super.onAfterRunFiles(files);
    const known = findings();
    const loaded = Object.keys(switches.mutantCoverage?.static ?? {});
    known.loaded = [...new Set([...known.loaded, ...loaded])];
    for (const { filepath, tasks, result } of files as readonly RunnerTestFile[]) {
      const hasFailed = result?.state === 'fail' && haveMutantsRun;
      const isDone = testsOf(tasks).every(({ id, mode }) => mode !== 'run' || known.done.includes(id));
      if (isDone && !hasFailed) known.finished.push(filepath);
    }
    save();
  }
}

function testsOf(tasks: readonly RunnerTask[]): readonly RunnerTask[] {
  return tasks.flatMap((task) => ('tasks' in task ? testsOf(task.tasks) : [task]));
}

/** Runs a test with each of these mutants; false once it fails without one. */
async function catchMutants(
  left: readonly string[],
  title: string,
  hits: Readonly<Record<string, number>>,
  run: () => Promise<void>,
): Promise<boolean> {
  const known = findings();
  for (const id of left) {
    haveMutantsRun = true;
    known.running = { id, test: title };
    save();
    const isCaught = !(await passesWith(id, hits[id]!, run));
    known.running = null;
    if (!isCaught) continue;
    known.caught[id] = title;
    save();
    if (!(await passes(run))) return false;
  }
  save();
  return true;
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

/** Loops that a wrong condition never ends, and ranks that wait for each other, would take for ever. */
function timeLimitMs(durationMs: number): number {
  return 2000 + 10 * durationMs;
}

const callUnderTest = new Script('__underTest__()');

/** Runs a test, whose calls a timer of V8's ends; what it then waits for is no longer waited for. */
async function withinTime(limitMs: number, test: () => unknown): Promise<void> {
  if (limitMs === Infinity) {
    await test();
    return;
  }
  shared.__underTest__ = test;
  const result: unknown = callUnderTest.runInThisContext({ timeout: Math.ceil(limitMs) });
  if (!(result instanceof Promise)) return;
  let timer: NodeJS.Timeout;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${limitMs / 1000} s`)), limitMs);
  });
  await Promise.race([result, late]).finally(() => clearTimeout(timer));
}
