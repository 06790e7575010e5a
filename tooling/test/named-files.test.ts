import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

// Without a GPU its tests do not run, and would name a file that has moved until somebody has one.
it('the files that tests and sources name by their own places are there', () => {
  const named = globSync('packages/*/{src,test}/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/new URL\(\s*'(\.[^']*\.\w+)',\s*import\.meta\.url,?\s*\)/g)].map(
      ([, path = '']) => ({ file, path }),
    ),
  );
  expect(named.map(({ file }) => file)).toContain('packages/tensor-core/test/gpu/streams.test.ts');
  const missing = named.filter(
    ({ file, path }) => !existsSync(new URL(path, `file://${process.cwd()}/${file}`)),
  );
  expect(missing).toEqual([]);
});
