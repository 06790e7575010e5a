import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { codeBlocks } from '../../../tooling/handbook/code-blocks.ts';
import { hostCompilerVersion } from '../src/testing/emulated-compiler.ts';
import { printedByExample, runExample } from './run-example.ts';

const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const files = codeBlocks(page).filter(({ file }) => file !== null);

it('the README shows the example as it is, and what it prints', () => {
  expect(files.map(({ file }) => file)).toEqual(['add.cu', 'add.mjs']);
  for (const { file, code } of files)
    expect(readFileSync(new URL(`../examples/${file}`, import.meta.url), 'utf8')).toBe(code);
  expect(page).toContain(`\n\`\`\`\n${printedByExample}\`\`\`\n`);
});

it.skipIf(!hostCompilerVersion())('it runs on an emulated GPU', () => {
  const preload = new URL('emulated-gpu/preload.mjs', import.meta.url).href;
  expect(runExample(['--import', preload])).toBe(printedByExample);
});
