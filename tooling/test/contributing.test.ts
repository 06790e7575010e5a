import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import * as t from '../../packages/tensor-core/src/index.ts';
import { hostCompilerVersion } from '../../packages/cuda/src/testing.ts';
import { openEmulatedDevice } from '../../packages/tensor-core/src/testing.ts';
import type { ElementwiseCase } from '../../packages/tensor-core/test/op-cases/elementwise/elementwise.ts';
import { describeElementwise } from '../../packages/tensor-core/test/op-cases/generic.ts';

const page = readFileSync('CONTRIBUTING.md', 'utf8');
const core = resolve('packages/tensor-core');
const cuda = resolve('packages/cuda');
const walks = resolve('tooling/test/.walks');

/** The first block of code after a text on the page. */
function codeBehind(text: string): string {
  const block = /```\w+\n([\s\S]*?)```/.exec(page.slice(page.indexOf(text)));
  if (!page.includes(text) || !block) throw new Error(`CONTRIBUTING.md has no code after "${text}".`);
  return block[1]!;
}

/** Writes a module as if it lay in `folder`, or in a package that has tensor-core installed. */
function writeModule(path: string, code: string, folder: string): string {
  const module = code
    .replaceAll(/from '(\.[^']+)'/g, (_, from: string) => `from '${join(folder, from)}'`)
    .replaceAll("'@roofline/tensor-core/kernel-api'", `'${core}/src/kernel-api.ts'`)
    .replaceAll("'@roofline/cuda'", `'${cuda}/src/index.ts'`)
    .replaceAll("'@roofline/tensor-core'", `'${core}/src/index.ts'`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, module);
  return path;
}

afterAll(() => rmSync(walks, { recursive: true, force: true }));

const emulated = hostCompilerVersion() === null ? null : openEmulatedDevice();

const file = 'packages/tensor-core/src/ops/elementwise/softsign.ts';
const softsign = writeModule(join(walks, 'softsign.ts'), codeBehind(`\`${file}\``), resolve(dirname(file)));
const line = codeBehind('`test/op-cases/elementwise/elementwise.ts`');
const casesModule = writeModule(
  join(walks, 'cases.ts'),
  `import * as tensorCore from '@roofline/tensor-core';
  import { oneInput } from '${core}/test/op-cases/elementwise/elementwise.ts';
  import { softsign } from '${softsign}';
  const t = { ...tensorCore, softsign };
  export const cases = [${line}];`,
  walks,
);
const { cases } = (await import(/* @vite-ignore */ casesModule)) as { cases: readonly ElementwiseCase[] };

describe('the op that CONTRIBUTING.md adds, on the CPU', () =>
  describeElementwise(() => t.device('cpu'), { float64: true }, cases));

describe.skipIf(emulated === null)('the op that CONTRIBUTING.md adds, on the emulated GPU', () =>
  describeElementwise(() => emulated!, { float64: false, brief: true, lowDTypes: ['bfloat16'] }, cases),
);

describe("the op of a package of the reader's own", async () => {
  writeFileSync(join(walks, 'package.json'), '{ "name": "of-the-reader" }');
  mkdirSync(join(walks, 'kernels'), { recursive: true });
  writeFileSync(join(walks, 'kernels', 'flip.cu'), codeBehind('`kernels/flip.cu`'));
  const path = writeModule(join(walks, 'src', 'flip.ts'), codeBehind('`src/flip.ts`'), walks);
  const { flip } = (await import(/* @vite-ignore */ path)) as { flip: (x: t.Tensor) => t.Tensor };

  it.each([t.device('cpu'), ...(emulated ? [emulated] : [])])(
    'runs on $name, of strided and empty inputs',
    (device) => {
      t.scope(() => {
        const x = t.tensor(
          [
            [1, 2, 3],
            [4, 5, 6],
          ],
          { device },
        );
        expect(flip(x).toArray()).toEqual([
          [3, 2, 1],
          [6, 5, 4],
        ]);
        expect(flip(t.transpose(x)).toArray()).toEqual([
          [4, 1],
          [5, 2],
          [6, 3],
        ]);
        expect(flip(t.zeros([0, 3], { device })).shape).toEqual([0, 3]);
        expect(flip(x.to('bfloat16')).toArray()).toEqual([
          [3, 2, 1],
          [6, 5, 4],
        ]);
      });
    },
  );

  it('has the gradient that finite differences show', () => {
    const x = t.tensor(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      { dtype: 'float64' },
    );
    t.checkGradients((input) => t.mul(flip(input!), t.tensor([1, 2, 4], { dtype: 'float64' })), [x]);
  });
});
