import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const packages = join(root, 'packages');
/** Where the tests of the harness keep the ceilings of this machine, too. */
const cache = join(packages, 'bench-harness/node_modules/.cache/tests');

/**
 * After a build, as `npm test` says by ROOFLINE_TEST_BUILT=1, what is published runs, which starts in half the time.
 */
export const isBuilt = process.env['ROOFLINE_TEST_BUILT'] === '1';
const conditions = isBuilt ? '' : '--conditions=roofline-source ';
const program = (name: string) => join(packages, name, isBuilt ? 'dist/cli.js' : 'src/cli.ts');

/** A reader's project, in which the packages of this repository are installed as they are. */
export class Workshop {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'node_modules/@roofline'), { recursive: true });
    this.setType('commonjs');
    for (const name of readdirSync(packages)) {
      symlinkSync(join(packages, name), join(folder, 'node_modules/@roofline', name));
    }
    symlinkSync(join(packages, 'bench-harness/node_modules/zod'), join(folder, 'node_modules/zod'));
    this.#writeCommand(
      'node',
      `exec "${process.execPath}" ${conditions}--disable-warning=ExperimentalWarning "$@"`,
    );
    this.#writeCommand('roofline', `exec npx roofline "$@"`);
    this.#writeCommand(
      'npx',
      `command=$1; shift
case $command in
  roofline) exec node "${program('bench-harness')}" "$@" ;;
  roofline-launch) exec node "${program('collectives')}" "$@" ;;
esac
echo "no page should run npx $command" >&2
exit 1`,
    );
  }

  /** What `npm init -y` says, CommonJS, or a page by `npm pkg set type=module`. */
  setType(type: 'commonjs' | 'module'): void {
    this.write('package.json', JSON.stringify({ name: 'of-the-reader', type, private: true }));
  }

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), content);
  }

  /** Runs lines of shell, up to the first that fails; gives what they print. Throws with all of it where one fails. */
  run(lines: string): string {
    const path = `${join(this.folder, 'bin')}${delimiter}${process.env['PATH']}`;
    const { status, stdout, stderr } = spawnSync('sh', ['-e', '-c', lines], {
      cwd: this.folder,
      encoding: 'utf8',
      timeout: 500_000,
      env: {
        ...{ ...process.env, PATH: path, XDG_CACHE_HOME: cache },
        ...{ NODE_OPTIONS: '', VITEST: '', NO_COLOR: '1' },
      },
    });
    if (status !== 0) throw new Error(`exit ${status}:\n${lines}\n${stdout}\n${stderr}`);
    return stdout + stderr;
  }

  /** `npm run -s roofline -- ARGS`, as in a clone that is built. */
  addNpmRun(): void {
    this.#writeCommand(
      'npm',
      `[ "$1 $2 $3 $4" = "run -s roofline --" ] || { echo "npm $* is not run here" >&2; exit 1; }
shift 4
exec npx roofline "$@"`,
    );
  }

  /** A command that comes before those of the machine. */
  #writeCommand(name: string, script: string): void {
    this.write(`bin/${name}`, `#!/bin/sh\n${script}\n`);
    chmodSync(join(this.folder, 'bin', name), 0o755);
  }
}
