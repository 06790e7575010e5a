import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { differences } from './differences.ts';
import { notOps, opTable } from './ops/table.ts';

const isClass = (value: unknown) => typeof value === 'function' && /^class\b/.test(String(value));
const functions = Object.entries(t).flatMap(([name, value]) =>
  typeof value === 'function' && !isClass(value) ? [name] : [],
);

describe('the table of differential tests', () => {
  it('has an entry for every public op', () => {
    const known = new Set([...opTable.map(({ name }) => name), ...notOps]);
    expect(functions.filter((name) => !known.has(name))).toEqual([]);
  });

  it('lists nothing that is not public', () => {
    const names = [...opTable.map(({ name }) => name), ...notOps];
    expect(names.filter((name) => !functions.includes(name))).toEqual([]);
  });

  it('calls no op a function that is none', () => {
    expect(notOps.filter((name) => opTable.some((entry) => entry.name === name))).toEqual([]);
  });
});

describe('the documented differences', () => {
  it('are in the README, each by its title', () => {
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');
    expect(differences.filter(({ title }) => !readme.includes(`**${title}**`))).toEqual([]);
  });
});
