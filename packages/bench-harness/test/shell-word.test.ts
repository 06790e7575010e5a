import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { shellWord } from '../src/shell-word.ts';

it.each(['results/e2e-20260102-030405', './a@b+c,d=%', '/tmp/x_y:z'])('%s is a word as it is', (path) => {
  expect(shellWord(path)).toBe(path);
});

it
  .runIf(process.platform !== 'win32')
  .each(['sp ace', `"q" 's' <b>|&$HOME;\`id\``, '-rf', '', 'é漢', 'a\nb', '*', '\\'])(
  'a shell reads %j back',
  (path) => {
    const read = execFileSync('sh', ['-c', `printf %s ${shellWord(path)}`], { encoding: 'utf8' });
    expect(read).toBe(path.startsWith('-') ? `./${path}` : path);
  },
);
