import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { uncaughtError } from '../../src/launch/uncaught-error.ts';
import { nodeFlags, rankScript } from '../support/run-ranks.ts';

const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** What the launcher writes to stderr, the ranks' own lines in their order, and its exit code. */
function failing(ranks: number, ...words: string[]) {
  const args = [...nodeFlags, program, '--nproc', String(ranks), '--', ...words];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const lines = stderr.trimEnd().split('\n');
  const isOfRank = (line: string) => /^\[rank \d+\]/.test(line);
  return {
    code: status,
    ofRanks: lines.filter(isOfRank).sort(),
    summary: lines.filter((line) => !isOfRank(line)),
  };
}

describe('an error that nothing catches', () => {
  it('is reported once for all ranks that have it, without the frames of Node.js', () => {
    const { code, ofRanks, summary } = failing(3, rankScript('fails'), 'throws');
    expect(code).toBe(1);
    expect(ofRanks).toEqual([0, 1, 2].map((rank) => `[rank ${rank}] about to fail`));
    expect(summary).toEqual([
      'ranks 0, 1 and 2 failed: exit code 1',
      '  WeightsError: no weights',
      '  of a layer',
      expect.stringMatching(/^ {6}at .*fails\.ts:16:9 \{$/),
      '    layer: 3',
      '  }',
    ]);
  });

  it('of one rank names that rank, and does not mention the others, which were ended', () => {
    const { code, ofRanks, summary } = failing(2, rankScript('fails'), 'rejects', '1');
    expect({ code, ofRanks }).toEqual({ code: 1, ofRanks: [] });
    expect(summary).toEqual([
      'rank 1 failed first: exit code 1',
      '  RangeError: too late',
      expect.stringMatching(/fails\.ts:18:23$/),
    ]);
  });

  it.each([
    ['throws a text', ['  a text']],
    [
      'misses a package',
      [
        expect.stringMatching(/^ {2}Error.*: Cannot find package 'a-package-that-nobody-has' imported from /),
        "    code: 'ERR_MODULE_NOT_FOUND'",
        '  }',
      ],
    ],
  ])('%s', (fault, lines) => {
    const { ofRanks, summary } = failing(2, rankScript('fails'), fault);
    expect(ofRanks).toEqual([]);
    expect(summary).toEqual(['ranks 0 and 1 failed: exit code 1', ...lines]);
  });

  it('has the place of a syntax error, which no frame has', () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-launch-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const script = join(folder, 'broken.mjs');
    writeFileSync(script, '\nconst x = ;\n');
    expect(failing(2, script).summary).toEqual([
      'ranks 0 and 1 failed: exit code 1',
      "  SyntaxError: Unexpected token ';'",
      `      at file://${script}:2`,
    ]);
  });
});

it('a rank that ends with a code of its own has its last words repeated', () => {
  const { code, ofRanks, summary } = failing(2, rankScript('fails'), 'says so');
  expect(code).toBe(5);
  expect(ofRanks).toEqual(['[rank 0] no data', '[rank 1] no data']);
  expect(summary).toEqual(['ranks 0 and 1 failed: exit code 5', '  no data']);
});

it('lines that begin as an error does are written in their order', () => {
  const { code, ofRanks, summary } = failing(1, rankScript('fails'), 'writes a place');
  expect(code).toBe(0);
  expect([...ofRanks, ...summary].filter(Boolean)).toEqual(
    ['/data/shard-3:17', '/data/shard-4:17', 'is read'].map((line) => `[rank 0] ${line}`),
  );
});

it.each([
  ['/nowhere.js', 'the script /nowhere.js was not found'],
  [fileURLToPath(new URL('.', import.meta.url)), 'is a folder without an index.js'],
])('starts no rank of %s', (script, message) => {
  const { code, ofRanks, summary } = failing(3, script);
  expect({ code, ofRanks, lines: summary.length }).toEqual({ code: 2, ofRanks: [], lines: 1 });
  expect(summary[0]).toContain(message);
});

it.each([
  ['nothing', []],
  ['a crash outside of JavaScript', ['#', '# Fatal error in , line 0', '#', 'Node.js v24.0.0']],
  ['an error that was not written to its end', ['/x.js:1', 'f()', '^', '', 'Error: x']],
])('%s is no uncaught error', (_, lines) => {
  expect(uncaughtError(lines)).toBeNull();
});

it('leaves out the lines of the program between the mark and the error', () => {
  const lines = [
    '/x.ts:1',
    'enum A { B }',
    '^^^^^^',
    'f(A.B);',
    '',
    'SyntaxError [E]: no enum',
    '    at node:x:1',
  ];
  expect(uncaughtError([...lines, '', 'Node.js v24.0.0'])).toEqual([
    'SyntaxError [E]: no enum',
    '    at /x.ts:1',
  ]);
});
