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
          794624,
        ],
        "accumulateProducts": [
          4454,
          12473,
          1418434,
          797184,
        ],
        "carryLowPrecisionCopies": [
          4253,
          12036,
          1334534,
          783872,
        ],
        "finishTogether": [
          4245,
          12033,
          1386718,
          800768,
        ],
        "foldCopies": [
          4246,
          12020,
          1330542,
          783360,
        ],
        "freeFirst": [
          3423,
          10532,
          1168306,
          794112,
        ],
        "fusePointwise": [
          3467,
          10602,
          1183172,
          799232,
        ],
        "fuseProloguesAndEpilogues": [
          3423,
          10532,
          1168306,
          802816,
        ],
        "joinCrossEntropy": [
          4432,
          12394,
          1411774,
          795136,
        ],
        "keepRepeated": [
          3408,
          10517,
          1162882,
          776704,
        ],
        "mergeProducts": [
          4444,
          12443,
          1417218,
          797696,
        ],
        "pairCalls": [
          4227,
          11989,
          1327326,
          784384,
        ],
        "readTogether": [
          3320,
          10329,
          1131154,
          776192,
        ],
        "rematerialize": [
          3464,
          10674,
          1185890,
          769024,
        ],
        "scaleInUpdate": [
          3423,
          10532,
          1168306,
          802816,
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
          802816,
        ],
        "withoutRepeatedCalls": [
          4627,
          12819,
          1456778,
          800768,
        ],
      }
    `);
  });
});
