import { describe, expect, it } from 'vitest';
import { fuzzSettings } from '../../tensor-core/test/compile/fuzz-settings.ts';
import {
  footprintsOfRandomSteps,
  itLeavesWhatRandomStepsLeave,
} from '../../tensor-core/test/compile/random-passes.ts';
import { trainers } from './random-steps-cases.ts';

describe('random programs with optimizers in symbols', () => {
  itLeavesWhatRandomStepsLeave(fuzzSettings(1, 250), trainers);

  // As in tensor-core's random-passes.test.ts.
  it('have the calls, operands, bytes of operands and of the arena behind each pass that they had', () => {
    expect(footprintsOfRandomSteps(250, trainers)).toMatchInlineSnapshot(`
      {
        "accumulateEmbeddings": [
          3740,
          11165,
          1380952,
          716288,
        ],
        "accumulateProducts": [
          3792,
          11333,
          1390156,
          721920,
        ],
        "carryLowPrecisionCopies": [
          3518,
          10755,
          1293462,
          707072,
        ],
        "finishTogether": [
          3516,
          10781,
          1399566,
          744960,
        ],
        "foldCopies": [
          3516,
          10751,
          1291926,
          707072,
        ],
        "freeFirst": [
          3024,
          10031,
          1263817,
          764416,
        ],
        "fusePointwise": [
          3019,
          10032,
          1285055,
          748544,
        ],
        "fuseProloguesAndEpilogues": [
          2991,
          9990,
          1279233,
          749568,
        ],
        "joinCrossEntropy": [
          3742,
          11169,
          1381056,
          716288,
        ],
        "mergeProducts": [
          3760,
          11237,
          1386812,
          719872,
        ],
        "pairCalls": [
          3494,
          10717,
          1288462,
          707072,
        ],
        "rematerialize": [
          3055,
          10149,
          1271093,
          742400,
        ],
        "scaleInUpdate": [
          3018,
          10022,
          1263601,
          773120,
        ],
        "traced": [
          4071,
          11978,
          1460360,
          729600,
        ],
        "updateEarly": [
          3024,
          10031,
          1263817,
          773632,
        ],
        "withoutRepeatedCalls": [
          3964,
          11677,
          1423572,
          723968,
        ],
      }
    `);
  });
});
