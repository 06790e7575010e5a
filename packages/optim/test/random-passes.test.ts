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
          3609,
          10820,
          1294174,
          707584,
        ],
        "accumulateProducts": [
          3633,
          10904,
          1300482,
          711168,
        ],
        "carryLowPrecisionCopies": [
          3428,
          10493,
          1213988,
          702976,
        ],
        "finishTogether": [
          3426,
          10519,
          1320092,
          740864,
        ],
        "foldCopies": [
          3426,
          10489,
          1212452,
          702976,
        ],
        "freeFirst": [
          2912,
          9673,
          1171223,
          758784,
        ],
        "fusePointwise": [
          2910,
          9679,
          1192781,
          739840,
        ],
        "fuseProloguesAndEpilogues": [
          2879,
          9632,
          1186639,
          742400,
        ],
        "joinCrossEntropy": [
          3611,
          10824,
          1294278,
          707584,
        ],
        "keepRepeated": [
          2923,
          9718,
          1172539,
          741376,
        ],
        "mergeProducts": [
          3629,
          10892,
          1300034,
          711168,
        ],
        "pairCalls": [
          3404,
          10455,
          1208988,
          703488,
        ],
        "rematerialize": [
          2947,
          9806,
          1179471,
          737280,
        ],
        "scaleInUpdate": [
          2906,
          9664,
          1171007,
          765952,
        ],
        "traced": [
          4071,
          11978,
          1460360,
          729600,
        ],
        "updateEarly": [
          2912,
          9673,
          1171223,
          766464,
        ],
        "withoutRepeatedCalls": [
          3754,
          11146,
          1323610,
          712704,
        ],
      }
    `);
  });
});
