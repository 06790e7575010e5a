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
          4249,
          12043,
          1389926,
          804864,
        ],
        "foldCopies": [
          4250,
          12030,
          1333750,
          787456,
        ],
        "freeFirst": [
          3426,
          10539,
          1172490,
          796160,
        ],
        "fusePointwise": [
          3470,
          10609,
          1187356,
          801792,
        ],
        "fuseProloguesAndEpilogues": [
          3426,
          10539,
          1172490,
          805376,
        ],
        "joinCrossEntropy": [
          4432,
          12394,
          1411774,
          796672,
        ],
        "keepRepeated": [
          3437,
          10575,
          1176366,
          776704,
        ],
        "mergeProducts": [
          4444,
          12443,
          1417218,
          799232,
        ],
        "pairCalls": [
          4231,
          11999,
          1330534,
          788480,
        ],
        "rematerialize": [
          3466,
          10678,
          1188934,
          771072,
        ],
        "scaleInUpdate": [
          3426,
          10539,
          1172490,
          805376,
        ],
        "traced": [
          5020,
          13850,
          1607124,
          825856,
        ],
        "updateEarly": [
          3426,
          10539,
          1172490,
          805376,
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
