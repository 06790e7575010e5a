import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { formatPlace, userPlace } from '../../../src/base/host/user-place.ts';

const elsewhere = fileURLToPath(new URL('../../..', import.meta.url));
const sources = fileURLToPath(new URL('../../../src/base/host/user-place.ts', import.meta.url));

/** A user's project, in which this package and one more lie as pnpm puts them: behind links. */
const project = mkdtempSync(join(tmpdir(), 'roofline-place-'));
afterAll(() => rmSync(project, { recursive: true }));

function write(path: string, text: string): string {
  const file = join(project, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function link(name: string, folder: string): void {
  const place = join(project, 'node_modules', name);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(folder, place);
}

const built = 'node_modules/.pnpm/@roofline+built@1.0.0/node_modules/@roofline/built';
const manifest = (name: string, main: string) => JSON.stringify({ name, type: 'module', exports: main });
write(`${built}/package.json`, manifest('@roofline/built', './dist/index.js'));
write(
  `${built}/dist/index.js`,
  `${stripTypeScriptTypes(readFileSync(sources, 'utf8'))}\n` +
    'const below = (calls, fn) => (calls === 0 ? fn() : below(calls - 1, fn));\n' +
    'export const find = (depth = 0) => { const place = below(depth, userPlace); return place && formatPlace(place); };\n' +
    'export const findBehind = (items) => items.map(() => find(100))[0];\n',
);
link('@roofline/built', join(project, built));
write('node_modules/helper/package.json', manifest('helper', './dist/index.js'));
write('node_modules/helper/dist/index.js', 'export const call = (fn) => fn();\n');

/** What a script in the project prints. */
function run(name: string, lines: readonly string[], flags: readonly string[] = [], cwd = project): string {
  const words = ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', ...flags];
  const script = write(name, lines.join('\n'));
  return execFileSync(process.execPath, [...words, script], { cwd, encoding: 'utf8' }).trim();
}

describe("the place of the user's code", () => {
  it('is the innermost call outside of packages that are built and lie behind links', () => {
    const printed = run('train.mjs', [
      "import { find, findBehind } from '@roofline/built';",
      "import { call } from 'helper';",
      'console.log(find());',
      'const step = () => findBehind([1]);',
      'console.log(step(), call(find), call(() => find()));',
    ]);
    expect(printed.split(/\s+/)).toEqual([
      'train.mjs:3:13',
      'train.mjs:4:20',
      'node_modules/helper/dist/index.js:1:29',
      'train.mjs:5:44',
    ]);
  });

  it('is a path where the file lies outside of the current folder', () => {
    const lines = ["import { find } from '@roofline/built';", 'console.log(find());'];
    expect(run('apart/train.mjs', lines, [], tmpdir())).toMatch(/^roofline-place-.*train\.mjs:2:13$/);
    expect(run('apart/train.mjs', lines, [], elsewhere)).toBe(`${join(project, 'apart/train.mjs')}:2:13`);
  });

  it('is a line of what was written where source maps are on', () => {
    const lines = [
      "import { find } from '@roofline/built';",
      'enum Size {',
      '  small,',
      '  large,',
      '}',
      'interface Options { readonly size: Size }',
      '',
      'const options: Options = { size: Size.large };',
      'console.log(find(options.size));',
    ];
    expect(run('mapped.ts', lines, ['--experimental-transform-types'])).toBe('mapped.ts:9:13');
  });

  it('leaves the stack of other errors as it is', () => {
    const before = Object.getOwnPropertyDescriptors(Error);
    const place = userPlace()!;
    expect(formatPlace(place)).toMatch(/test\/base\/host\/user-place\.test\.ts:\d+:\d+$/);
    expect(Object.getOwnPropertyDescriptors(Error)).toEqual(before);
  });
});
