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
          706560,
        ],
        "accumulateProducts": [
          3633,
          10904,
          1300482,
          710144,
        ],
        "carryLowPrecisionCopies": [
          3428,
          10493,
          1213988,
          700928,
        ],
        "finishTogether": [
          3423,
          10512,
          1317004,
          737792,
        ],
        "foldCopies": [
          3423,
          10482,
          1209364,
          699904,
        ],
        "freeFirst": [
          2906,
          9659,
          1165575,
          758784,
        ],
        "fusePointwise": [
          2904,
          9665,
          1187133,
          739328,
        ],
        "fuseProloguesAndEpilogues": [
          2873,
          9618,
          1180991,
          741888,
        ],
        "joinCrossEntropy": [
          3611,
          10824,
          1294278,
          706560,
        ],
        "keepRepeated": [
          2900,
          9657,
          1158301,
          742400,
        ],
        "mergeProducts": [
          3629,
          10892,
          1300034,
          710144,
        ],
        "pairCalls": [
          3401,
          10448,
          1205900,
          700416,
        ],
        "readTogether": [
          2845,
          9540,
          1141495,
          741888,
        ],
        "rematerialize": [
          2941,
          9792,
          1173823,
          737280,
        ],
        "scaleInUpdate": [
          2900,
          9650,
          1165359,
          765440,
        ],
        "traced": [
          4071,
          11978,
          1460360,
          729600,
        ],
        "updateEarly": [
          2906,
          9659,
          1165575,
          765952,
        ],
        "withoutRepeatedCalls": [
          3754,
          11146,
          1323610,
          711680,
        ],
      }
    `);
  });
});
