import { expect, it } from 'vitest';
import { nodeProblem } from '../../src/cli/node-version.ts';

it.each(['v18.19.0', 'v20.20.2', 'v22.0.0', 'v22.11.9', 'v0.12.18'])('%s is too old', (version) => {
  expect(nodeProblem(version)).toBe(
    `Node.js 22.12 or newer is needed; this is ${version}. Install it from https://nodejs.org, or put it in front for ` +
      'one command: `npx -y -p node@lts -- roofline ...`.',
  );
});

it.each(['v22.12.0', 'v22.21.1', 'v23.0.0', 'v24.1.0-nightly', process.version])('%s will do', (version) => {
  expect(nodeProblem(version)).toBeNull();
});
