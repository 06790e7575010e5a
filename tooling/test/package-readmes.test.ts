import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { codeBlocks } from '../handbook/code-blocks.ts';
import { Workshop } from '../handbook/workshop.ts';

// What a README has before its first picture is tried first, as it is.

const workshops = resolve('tooling/test/.readmes');
const hasGloo = existsSync(resolve('packages/collectives/native/build'));

afterAll(() => rmSync(workshops, { recursive: true, force: true }));

/** The blocks without a language: what commands print. */
const printed = (text: string) =>
  [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)]
    .filter(([, words]) => words === '')
    .map((match) => match[2]!);
const NUMBER = /-?\d+(?:\.\d+)?/g;
const numbersOf = (text: string) => (text.match(NUMBER) ?? []).map(Number);

describe.each(readdirSync('packages'))('packages/%s/README.md', (name) => {
  const [start = ''] = readFileSync(join('packages', name, 'README.md'), 'utf8').split('<picture>');
  const blocks = codeBlocks(start);
  const programs = blocks.filter(({ file }) => file !== null);
  const commands = blocks.filter(({ language }) => language === 'sh');

  it('installs what its first program imports, and itself', () => {
    const install = commands.find(({ mark }) => mark === 'install')?.code ?? '';
    const installed = /^npm install (.*)$/m.exec(install)?.[1]!.split(' ') ?? [];
    const imported = programs.flatMap(({ code }) =>
      [...code.matchAll(/from '(@[^/]+\/[^/']+)/g)].map(([, imported]) => imported!),
    );
    expect(installed).toContain(`@roofline/${name}`);
    expect(installed).toEqual(expect.arrayContaining(imported));
  });

  it('has a first program that prints what it says, within rounding', () => {
    const workshop = new Workshop(join(workshops, name));
    for (const { file, code } of programs) workshop.write(file!, code);
    const isRun = ({ mark }: (typeof blocks)[number]) => mark === null || (mark === 'gloo' && hasGloo);
    const output = commands
      .filter(isRun)
      .map(({ code }) => workshop.run(code))
      .join('');
    const [expected] = printed(start);
    expect(commands.filter(({ mark }) => mark !== 'install')).not.toEqual([]);
    // What needs a GPU, tests of the package run on an emulated one.
    if (expected === undefined || !commands.some(isRun)) return;
    expect(output.replace(NUMBER, '#').trim()).toBe(expected.replace(NUMBER, '#').trim());
    const values = numbersOf(output);
    numbersOf(expected).forEach((value, i) => {
      expect(Math.abs(values[i]! - value)).toBeLessThanOrEqual(0.1 + 0.01 * Math.abs(value));
    });
  });
});
