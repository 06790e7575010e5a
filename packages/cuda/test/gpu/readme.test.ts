import { readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { codeBlocks } from '../../../../tooling/handbook/code-blocks.ts';
import { Workshop } from '../../../../tooling/handbook/workshop.ts';

// The repository's tests run it on an emulated GPU.
it("the README's first program runs on a GPU", () => {
  const workshop = new Workshop(resolve('../../tooling/test/.readmes/cuda-on-a-gpu'));
  onTestFinished(() => rmSync(workshop.folder, { recursive: true }));
  const page = readFileSync('README.md', 'utf8');
  const blocks = codeBlocks(page);
  for (const { file, code } of blocks) if (file !== null) workshop.write(file, code);
  const commands = blocks.filter(({ mark }) => mark === 'gpu').map(({ code }) => workshop.run(code));
  expect(commands).toHaveLength(1);
  expect(page).toContain(`\n\`\`\`\n${commands[0]}\`\`\`\n`);
});
