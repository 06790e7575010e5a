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
          3423,
          10512,
          1317004,
          739840,
        ],
        "foldCopies": [
          3423,
          10482,
          1209364,
          701952,
        ],
        "freeFirst": [
          2906,
          9659,
          1165575,
          759296,
        ],
        "fusePointwise": [
          2904,
          9665,
          1187133,
          739840,
        ],
        "fuseProloguesAndEpilogues": [
          2873,
          9618,
          1180991,
          742400,
        ],
        "joinCrossEntropy": [
          3611,
          10824,
          1294278,
          707584,
        ],
        "keepRepeated": [
          2917,
          9704,
          1166891,
          741888,
        ],
        "mergeProducts": [
          3629,
          10892,
          1300034,
          711168,
        ],
        "pairCalls": [
          3401,
          10448,
          1205900,
          702464,
        ],
        "rematerialize": [
          2941,
          9792,
          1173823,
          737792,
        ],
        "scaleInUpdate": [
          2900,
          9650,
          1165359,
          765952,
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
