// `npm run mutate -- --conditions`: only conditions, and only where a program is rewritten, reordered or divided.
import { otherMutators } from './condition-mutator.mjs';
import everything from './stryker.config.mjs';

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  ...everything,
  mutate: [
    'packages/tensor-core/src/compile/{passes,graph,trace}/*.ts',
    'packages/tensor-core/src/compile/*.ts',
    'packages/collectives/src/parallel/*.ts',
  ],
  mutator: { excludedMutations: otherMutators },
  incrementalFile: '.mutation/conditions.json',
  htmlReporter: { fileName: '.mutation/conditions.html' },
  jsonReporter: { fileName: '.mutation/conditions.report.json' },
};
