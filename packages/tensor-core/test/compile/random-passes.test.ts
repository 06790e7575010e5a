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
          4429,
          12388,
          1409618,
          796160,
        ],
        "accumulateProducts": [
          4454,
          12473,
          1418434,
          798720,
        ],
        "carryLowPrecisionCopies": [
          4253,
          12036,
          1334534,
          786432,
        ],
        "finishTogether": [
          4245,
          12033,
          1386718,
          803328,
        ],
        "foldCopies": [
          4246,
          12020,
          1330542,
          785920,
        ],
        "freeFirst": [
          3423,
          10532,
          1168306,
          796160,
        ],
        "fusePointwise": [
          3467,
          10602,
          1183172,
          801280,
        ],
        "fuseProloguesAndEpilogues": [
          3423,
          10532,
          1168306,
          804864,
        ],
        "joinCrossEntropy": [
          4432,
          12394,
          1411774,
          796672,
        ],
        "keepRepeated": [
          3434,
          10568,
          1172182,
          776704,
        ],
        "mergeProducts": [
          4444,
          12443,
          1417218,
          799232,
        ],
        "pairCalls": [
          4227,
          11989,
          1327326,
          786944,
        ],
        "rematerialize": [
          3463,
          10671,
          1184750,
          771072,
        ],
        "scaleInUpdate": [
          3423,
          10532,
          1168306,
          804864,
        ],
        "traced": [
          5020,
          13850,
          1607124,
          825856,
        ],
        "updateEarly": [
          3423,
          10532,
          1168306,
          804864,
        ],
        "withoutRepeatedCalls": [
          4627,
          12819,
          1456778,
          802304,
        ],
      }
    `);
  });
});
