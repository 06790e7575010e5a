import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

it("a CompileError tells the place of the user's code where packages lie behind links", () => {
  const project = mkdtempSync(join(tmpdir(), 'roofline-place-'));
  onTestFinished(() => rmSync(project, { recursive: true }));
  mkdirSync(join(project, 'node_modules/@roofline'), { recursive: true });
  symlinkSync(join(import.meta.dirname, '../..'), join(project, 'node_modules/@roofline/tensor-core'));
  const lines = [
    "import * as t from '@roofline/tensor-core';",
    'const step = t.compile((x: t.Tensor): t.Tensor => {',
    '  const loss = t.sum(t.exp(x));',
    '  return loss.item() > 0 ? x : loss;',
    '});',
    'try {',
    '  step(t.ones([2]));',
    '} catch (error) {',
    '  console.log((error as Error).message);',
    '}',
  ];
  const script = join(project, 'compiled.ts');
  writeFileSync(script, lines.join('\n'));
  const words = ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', script];
  const printed = execFileSync(process.execPath, words, { cwd: project, encoding: 'utf8' }).trim();
  expect(printed).toMatch(/^compile: the host reads .*behind the op sum.* say\. At compiled\.ts:4:15\.$/);
});
