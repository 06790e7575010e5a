import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { codeBlocks, type CodeBlock } from '../handbook/code-blocks.ts';
import { isBuilt, Workshop } from '../handbook/workshop.ts';

const handbook = resolve('docs/handbook');
const workshops = resolve('tooling/test/.handbook');
const pages = [...readdirSync(handbook).filter((file) => file !== 'README.md'), '../cs336.md'];
const hasGloo = existsSync(resolve('packages/collectives/native/build'));

afterAll(() => rmSync(workshops, { recursive: true, force: true }));

const isRun = ({ mark }: CodeBlock) => mark === null || (mark === 'gloo' && hasGloo);
const blocksOf = (page: string) => codeBlocks(readFileSync(join(handbook, page), 'utf8'));
const shown = ({ code }: CodeBlock) => code.trim().split('\n')[0]!.slice(0, 70);

const helps = new Map<string, string>();

function helpOf(workshop: Workshop, command: string): string {
  const help = helps.get(command) ?? workshop.run(`npx roofline ${command} --help`);
  helps.set(command, help);
  return help;
}

describe.each(pages)('%s', (page) => {
  const workshop = new Workshop(join(workshops, basename(page, '.md')));
  const blocks = blocksOf(page);
  for (const { file, code } of blocks) if (file !== null) workshop.write(file, code);
  if (blocks.some(({ code }) => code.includes('npm pkg set type=module'))) workshop.setType('module');

  const commands = blocks.filter(({ language }) => language === 'sh');
  it.each(commands.filter(isRun).map((block) => [block.line, shown(block), block] as const))(
    'line %i runs: %s',
    (_line, _shown, { code }) => {
      workshop.run(code);
    },
  );

  const lookedUp = commands.filter(({ mark }) => mark === 'gpu' || mark === 'flags');
  it.each(lookedUp.map((block) => [block.line, block] as const))(
    'line %i, which is not run, has flags that exist',
    (_line, { code }) => {
      for (const line of code.trim().split('\n')) {
        const [, command] = /^(?:npx )?roofline (\S+)/.exec(line) ?? [];
        const help = helpOf(workshop, command!);
        for (const [flag] of line.matchAll(/--[\w-]+/g)) expect(help).toContain(flag);
      }
    },
  );

  const installs = commands.filter(({ mark }) => mark === 'install');
  it.runIf(installs.length > 0)(
    'installs what a clone packs, and names the packages that a registry will have',
    () => {
      const lines = installs.map(({ code }) => code).join('\n');
      const [, named = ''] =
        /^npm install \.\.\/roofline\/tarballs\/\*\.tgz.*# .*in a registry later: (.*)$/m.exec(lines) ?? [];
      const programs = blocks.map(({ code }) => code).join('\n');
      const imported = [...programs.matchAll(/from '(@roofline\/[\w-]+)/g)].map(([, name]) => name!);
      expect(named.split(' ')).toEqual(expect.arrayContaining(imported));
      expect(named).not.toBe('');
    },
  );

  it('names each program that it has in a command, or marks it', () => {
    const programs = blocks.filter(({ language, mark }) => language === 'ts' && mark === null);
    expect(programs.filter(({ file }) => file === null)).toEqual([]);
    const used = [...commands, ...programs].map(({ code }) => code).join('\n');
    expect(programs.filter(({ file }) => !used.includes(file!.split('/').at(-1)!))).toEqual([]);
  });
});

it('the programs of all pages have types, those for a GPU too', () => {
  const compilerOptions = {
    noEmit: true,
    types: ['node'],
    rootDir: '../../..',
    noPropertyAccessFromIndexSignature: false,
    ...(isBuilt && { customConditions: [] }),
  };
  writeFileSync(
    join(workshops, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.base.json', compilerOptions, include: ['*/**/*.ts'] }),
  );
  const { stdout } = spawnSync(resolve('node_modules/.bin/tsc'), ['-p', join(workshops, 'tsconfig.json')], {
    encoding: 'utf8',
  });
  expect(stdout).toBe('');
});

it('says what is run and what is not', () => {
  const blocks = pages.flatMap(blocksOf);
  const run = blocks.filter(({ language, mark }) => ['sh', 'ts', 'cuda'].includes(language) && mark === null);
  console.log(`handbook: ${run.length} of ${blocks.length} blocks run; the others are marked`);
  expect(blocks.filter((block) => !run.includes(block) && block.mark === null)).toEqual([]);
});
