import { describe, expect, it } from 'vitest';
import { fuzzSettings } from './fuzz-settings.ts';
import { footprintsOfRandomSteps, itLeavesWhatRandomStepsLeave } from './random-passes.ts';

describe('random programs in symbols', () => {
  itLeavesWhatRandomStepsLeave(fuzzSettings(1, 400));

  // A pass that stops finding something gives no wrong number. Where the drawn programs change, these change too (vitest -u).
  it('have the calls, operands, bytes of operands and of the arena after each pass that they had', () => {
    expect(footprintsOfRandomSteps(400)).toMatchInlineSnapshot(`
      {
        "accumulateEmbeddings": [
          4597,
          12821,
          1504988,
          808448,
        ],
        "accumulateProducts": [
          4662,
          13026,
          1517740,
          813568,
        ],
        "carryLowPrecisionCopies": [
          4383,
          12393,
          1424372,
          793088,
        ],
        "finishTogether": [
          4379,
          12400,
          1479764,
          811008,
        ],
        "foldCopies": [
          4380,
          12387,
          1423588,
          794112,
        ],
        "freeFirst": [
          3583,
          11006,
          1276908,
          807424,
        ],
        "fusePointwise": [
          3623,
          11071,
          1291454,
          816128,
        ],
        "fuseProloguesAndEpilogues": [
          3583,
          11006,
          1276908,
          818176,
        ],
        "joinCrossEntropy": [
          4600,
          12827,
          1507144,
          808960,
        ],
        "mergeProducts": [
          4612,
          12876,
          1512588,
          811520,
        ],
        "pairCalls": [
          4361,
          12356,
          1420372,
          794624,
        ],
        "rematerialize": [
          3617,
          11122,
          1292616,
          781824,
        ],
        "scaleInUpdate": [
          3583,
          11006,
          1276908,
          818176,
        ],
        "traced": [
          5020,
          13850,
          1607124,
          825856,
        ],
        "updateEarly": [
          3583,
          11006,
          1276908,
          818176,
        ],
        "withoutRepeatedCalls": [
          4890,
          13482,
          1564928,
          816640,
        ],
      }
    `);
  });
});
