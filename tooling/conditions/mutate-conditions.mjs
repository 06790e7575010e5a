// `npm run mutate -- --conditions`: puts in one wrong condition at a time where programs are rewritten and gradients divided,
// and prints those that no test sees. Sources and tests among the arguments replace those of groups.ts.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
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

const given = process.argv.slice(2);
const givenTests = given.filter((file) => file.endsWith('.test.ts'));
const givenSources = new Set(given.filter((file) => !file.endsWith('.test.ts')));

const matching = (patterns) => [...new Set(patterns.flatMap((pattern) => globSync(pattern).sort()))];
const folder = join(root, '.mutation');
mkdirSync(folder, { recursive: true });

/** How often files of tests that a mutant has spoiled are run again, each time for what is left. */
const mostProcesses = 4;

const unused = new Set(equivalents);
const tally = [];
for (const { name, sources, without = [], tests: patterns } of groups) {
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
if (givenSources.size === 0) {
  for (const { source, replacement } of unused)
    console.log(`No condition is any more what equivalents.ts names: ${source} → ${replacement}`);
  if (unused.size > 0) process.exitCode = 1;
}

/** Runs a group's tests with each of its mutants, all in one process. */
async function findingsOf(name, files, chosen) {
  const { code, mutants } = await instrument(files.map((file) => resolve(file)));
  const path = join(folder, `conditions-${name}.json`);
  let known = { mutants, caught: {}, reached: [], loaded: [], unusable: [], spoiled: [] };
  let left = chosen;
  for (let i = 0; i < mostProcesses && left.length > 0; i++) {
    writeFileSync(path, JSON.stringify({ ...known, spoiled: [] }));
    await runTests(code, path, left);
    known = JSON.parse(readFileSync(path, 'utf8'));
    left = left.filter((file) => known.spoiled.includes(resolve(file)));
  }
  return known;
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
  const byFile = {};
  for (const mutant of mutants) {
    const outcome = isEquivalent(mutant)
      ? 'equivalent'
      : mutant.id in caught
        ? 'caught'
        : loaded.includes(mutant.id) && !reached.includes(mutant.id)
          ? 'static'
          : 'survived';
    counts[outcome]++;
    const ofFile = (byFile[relative(root, mutant.file)] ??= { caught: 0, survived: 0 });
    if (outcome in ofFile) ofFile[outcome]++;
    if (outcome === 'equivalent' && mutant.id in caught)
      console.log(
        `named as equivalent, but caught by ${caught[mutant.id]}: ${mutant.source} → ${mutant.replacement}`,
      );
    if (outcome !== 'survived') continue;
    const where = `${relative(root, mutant.file)}:${mutant.line}`;
    const unreached = reached.includes(mutant.id) ? '' : ' (no test reaches it)';
    console.log(`${where}: ${mutant.original} → ${mutant.replacement}${unreached}`);
  }
  for (const [file, { caught: of, survived }] of Object.entries(byFile))
    if (survived > 0) console.log(`  ${of} of ${of + survived} caught in ${file}`);
  const counted = counts.caught + counts.survived;
  return (
    `${name}: ${counts.caught} of ${counted} wrong conditions caught (${((100 * counts.caught) / counted).toFixed(1)} %); besides ` +
    `${counts.equivalent} are equivalent by equivalents.ts, and ${counts.static} run only as modules are loaded`
  );
}
