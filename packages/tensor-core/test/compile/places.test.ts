import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('places.ts', import.meta.url));

/** In plain Node, because what vitest runs has other lines. */
const messages = JSON.parse(
  execFileSync(
    process.execPath,
    ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', script],
    { encoding: 'utf8', cwd: dirname(script) },
  ),
) as Record<string, string>;

const lines = readFileSync(script, 'utf8').split('\n');

function lineNamed(name: string): number {
  return 1 + lines.findIndex((line) => line.split('// ')[1]?.split(', ').includes(name));
}

describe('errors of compile name the line at fault', () => {
  it.each<[string, RegExp]>([
    ['read by the host', /the host reads a tensor/],
    ['values of the host', /filled with values of the host/],
    ['history', /the result \[3\] of the op mul has a history/],
    ['hook', /a hook runs when a gradient has come/],
    ['freed gradient', /the gradient of a leaf \[3\] was freed.*of the op exp; keep\(\) it/],
    ['stays behind', /a tensor \[3\] of the op exp stays behind/],
    ['no tensor', /the result\.1 is 5/],
    ['argument with a history', /an argument has a history/],
    ['shared with what is captured', /shares memory with another tensor/],
    ['shared among arguments', /shares memory with another tensor/],
    ['held', /writes 12 bytes that allReduce works on/],
  ])('%s', (name, what) => {
    expect(messages[name]).toMatch(what);
    expect(messages[name]).toMatch(new RegExp(` at places\\.ts:${lineNamed(name)}:\\d+`, 'i'));
  });
});
