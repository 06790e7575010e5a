import { parseArgs } from 'node:util';

/** A program of this package next to its top modules: `src/NAME.ts` or, once built, `dist/NAME.js`. */
export function packageProgram(name: string): URL {
  return new URL(`./${name}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);
}

/**
 * Node's flags for a thread that runs one: those by which it finds modules as this one does. Others of this process, such as
 * the size of its heap, a thread refuses to begin with.
 */
export function threadFlags(): string[] {
  const { values } = parseArgs({
    args: process.execArgv,
    options: { conditions: { type: 'string', short: 'C', multiple: true } },
    strict: false,
    allowPositionals: true,
  });
  const conditions = values.conditions?.map((condition) => `--conditions=${condition}`) ?? [];
  return [...conditions, '--disable-warning=ExperimentalWarning'];
}
