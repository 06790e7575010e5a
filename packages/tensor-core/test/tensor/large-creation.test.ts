import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { OutOfMemoryError, type Tensor, argmax, expand, ones, scope } from '../../src/index.ts';

const index = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href);

it('makes more elements than the heap has room for as numbers', () => {
  // A list of that many numbers takes 64 MiB by itself.
  const program = `
    const { arange, linspace, max, pow, scope } = await import(${index});
    const [size, options] = [2 ** 23, { dtype: 'int32' }];
    scope(() => {
      const made = [arange(0, size, 1, options), linspace(0, size - 1, size, options)];
      console.log([...made, pow(made[0], 1)].map((x) => max(x).item() + 1 - size).join());
    });`;
  const words = [
    '--conditions=roofline-source',
    '--max-old-space-size=48',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
  ];
  const told = execFileSync(process.execPath, [...words, '--eval', program], { encoding: 'utf8' });
  expect(told.trim()).toBe('0,0,0');
});

it.each<[string, (x: Tensor) => unknown]>([
  ['to the host', (x) => x.toTypedArray()],
  ['by an op in JavaScript', argmax],
])('says that the host has no room for more elements than any memory, read %s', (_, read) => {
  scope(() => {
    const x = expand(ones([1]), [2 ** 45]);
    expect(() => read(x)).toThrow(OutOfMemoryError);
    expect(() => read(x)).toThrow('the host is out of memory: asked for 128 TiB');
  });
});
