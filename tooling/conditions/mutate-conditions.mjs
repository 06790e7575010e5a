// `npm run mutate -- --conditions`: puts in one wrong condition at a time where programs are rewritten and gradients divided,
// and prints those that no test sees. Names of groups among the arguments choose these; sources and tests replace theirs.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startVitest } from 'vitest/node';
import tests, { isAlone } from '../vitest.config.ts';
import { equivalents } from './equivalents.ts';
import { groups } from './groups.ts';
import { instrument } from './instrument.mjs';
import { OnlyFailures } from './only-failures.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
process.chdir(root);
// Random programs come last, for the few mutants that no single test has caught.
process.env.ROOFLINE_FUZZ_PROGRAMS ??= '100';

const given = new Set(process.argv.slice(2));
const givenGroups = new Set(groups.map(({ name }) => name)).intersection(given);
const givenTests = [...given].filter((file) => file.endsWith('.test.ts'));
const givenSources = given.difference(givenGroups).difference(new Set(givenTests));

const matching = (patterns) => [...new Set(patterns.flatMap((pattern) => globSync(pattern).sort()))];
const folder = join(root, '.mutation');
mkdirSync(folder, { recursive: true });

/** What a test may take in the first process, and in each later one. */
const patienceMs = [50, 500, Number.MAX_VALUE];

const unused = new Set(equivalents);
const tally = [];
for (const { name, sources, without = [], tests: patterns } of groups) {
  if (givenGroups.size > 0 && !givenGroups.has(name)) continue;
  const others = new Set(matching(without));
  const files = matching(sources).filter(
    (file) => !others.has(file) && (givenSources.size === 0 || givenSources.has(file)),
  );
  if (files.length === 0) continue;
  const chosen = givenTests.length > 0 ? givenTests : matching(patterns).filter((file) => !isAlone(file));
  const findings = await findingsOf(name, files, chosen);
  tally.push(report(name, findings));
}
console.log(`\n${tally.join('\n')}`);
if (givenGroups.size === 0 && givenSources.size === 0) {
  for (const { source, replacement } of unused)
    console.log(`No condition is any more what equivalents.ts names: ${source} → ${replacement}`);
  if (unused.size > 0) process.exitCode = 1;
}

/**
 * Runs a group's tests with each of its mutants, in one process for as long as that stays well, and in another one what is
 * left.
 */
async function findingsOf(name, files, chosen) {
  const { code, mutants } = await instrument(files.map((file) => resolve(file)));
  const path = join(folder, `conditions-${name}.json`);
  let known = { caught: {}, reached: [], loaded: [], unusable: [], done: [], finished: [] };
  const isLeft = (file) => !known.finished.includes(resolve(file));
  for (let calm = 0, left = chosen; left.length > 0; left = chosen.filter(isLeft)) {
    const before = known;
    writeFileSync(
      path,
      JSON.stringify({ ...known, running: null, patienceMs: patienceMs.at(calm) ?? patienceMs.at(-1) }),
    );
    await runTests(code, path, left);
    known = JSON.parse(readFileSync(path, 'utf8'));
    if (known.running) known.caught[known.running.id] = `${known.running.test}, which ended with it`;
    else calm++;
    const steps = ({ caught, done, finished }) => Object.keys(caught).length + done.length + finished.length;
    if (steps(known) === steps(before) && calm > patienceMs.length)
      throw new Error(`${name}: a process that ran ${left.join(', ')} ended before a test had`);
    console.log(
      `${name}: ${Object.keys(known.caught).length} of ${mutants.length} caught; ` +
        `${chosen.filter(isLeft).length} of ${chosen.length} files of tests go on in another process`,
    );
  }
  writeFileSync(path, JSON.stringify({ ...known, mutants }));
  return { ...known, mutants };
}

async function runTests(code, path, chosen) {
  process.env.ROOFLINE_MUTANTS = path;
  const { projects: _, maxWorkers: __, ...options } = tests.test;
  const order = chosen.map((file) => resolve(file));
  class InOrder {
    shard(files) {
      return files;
    }
    sort(files) {
      return files.toSorted((a, b) => order.indexOf(a.moduleId) - order.indexOf(b.moduleId));
    }
  }
  const vitest = await startVitest(
    'test',
    [],
    { config: false, watch: false },
    {
      ...tests,
      root,
      plugins: [{ name: 'mutants', enforce: 'pre', load: (id) => code.get(id.split('?')[0]) ?? null }],
      test: {
        ...options,
        include: order.map((file) => relative(root, file)),
        runner: here('mutant-runner.ts'),
        setupFiles: [here('../keep-environment.ts')],
        // It would hold the sources with the switches of another run.
        fsModuleCache: false,
        isolate: false,
        fileParallelism: false,
        maxWorkers: 1,
        // A loop that makes more and more ends soon.
        execArgv: ['--max-old-space-size=1500'],
        sequence: { sequencer: InOrder },
        testTimeout: 0,
        hookTimeout: 0,
        update: false,
        reporters: [new OnlyFailures()],
      },
    },
  );
  await vitest.close();
}

/** Prints what was not caught, and says the score in a line. */
function report(name, { mutants, caught, reached, loaded, unusable }) {
  for (const each of unusable) console.log(`not used, for it cannot be run again: ${each}`);
  const isEquivalent = ({ file, source, replacement }) => {
    const found = equivalents.find(
      (each) => file.endsWith(`/${each.file}`) && each.source === source && each.replacement === replacement,
    );
    unused.delete(found);
    return found !== undefined;
  };
  const counts = { caught: 0, equivalent: 0, static: 0, survived: 0 };
  const scores = new Map();
  const countIn = (place, isCaught) => {
    const score = scores.get(place) ?? { caught: 0, of: 0 };
    scores.set(place, { caught: score.caught + (isCaught ? 1 : 0), of: score.of + 1 });
  };
  for (const mutant of mutants) {
    const outcome = isEquivalent(mutant)
      ? 'equivalent'
      : mutant.id in caught
        ? 'caught'
        : loaded.includes(mutant.id) && !reached.includes(mutant.id)
          ? 'static'
          : 'survived';
    counts[outcome]++;
    const file = relative(root, mutant.file);
    if (outcome === 'caught' || outcome === 'survived')
      for (const place of [dirname(file), file]) countIn(place, outcome === 'caught');
    if (outcome === 'equivalent' && mutant.id in caught)
      console.log(
        `named as equivalent, but caught by ${caught[mutant.id]}: ${mutant.source} → ${mutant.replacement}`,
      );
    if (outcome !== 'survived') continue;
    const unreached = reached.includes(mutant.id) ? '' : ' (no test reaches it)';
    console.log(`${file}:${mutant.line}: ${mutant.original} → ${mutant.replacement}${unreached}`);
  }
  const shareOf = ({ caught: some, of }) => `${some} of ${of} (${((100 * some) / of).toFixed(1)} %)`;
  for (const [place, score] of [...scores].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${place.endsWith('.ts') ? '    ' : '  '}${place}: ${shareOf(score)}`);
  return (
    `${name}: ${shareOf({ caught: counts.caught, of: counts.caught + counts.survived })} wrong conditions caught; besides ` +
    `${counts.equivalent} are equivalent by equivalents.ts, and ${counts.static} run only as modules are loaded`
  );
}
