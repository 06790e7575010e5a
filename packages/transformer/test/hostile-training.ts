import { Generator, type Tensor, ones } from '@roofline/tensor-core';
import { type HostileTable, exempt } from '../../../tooling/hostile-arguments.ts';
import * as transformer from '../src/index.ts';

/** What calls are made with, and what undoes them. */
interface Fixtures {
  readonly model: () => transformer.TransformerLM;
  readonly loader: () => transformer.TokenLoader;
  readonly path: string;
  /** What errors of a file that is not there begin with. */
  readonly missing: string;
  readonly undo: () => void;
}

const toyOptimizer = () => ({
  learningRate: 1,
  parameters: () => [],
  ...{ step: () => {}, stepUnless: () => {}, zeroGrad: () => {} },
  ...{ stateDict: () => ({ tensors: {}, metadata: {} }), loadStateDict: () => {} },
});
const toyScaler = () => ({
  ...{ scale: (loss: Tensor) => loss, unscale: () => {}, step: () => {}, update: () => {} },
  ...{ stateDict: () => 1, loadStateDict: () => {} },
});
const partsLegal = {
  ...{ '0.optimizer': 'undefined', '0.scaler': 'undefined', '0.data': 'undefined' },
  ...{
    '1.optimizer': 'undefined',
    '1.scaler': 'undefined',
    '1.data': 'undefined',
    '1.generator': 'undefined',
  },
};
/** Of what trains, and saves a training. */
export function trainingTable({ model, loader, path, missing, undo }: Fixtures): HostileTable {
  const fitOptions = () => ({
    ...{ data: loader(), optimizer: toyOptimizer(), steps: 1, from: 0, schedule: () => 1, accumulate: 1 },
    ...{ dtype: 'float32', scaler: toyScaler(), clip: () => ones([]), loss: () => ones([]), compile: false },
    parallel: { group: { allReduce: () => ({ wait() {} }) } },
  });
  const trainingParts = () => ({
    ...{ model: model(), optimizer: toyOptimizer(), scaler: toyScaler(), data: loader() },
    generator: new Generator(0),
  });
  const oneRank = () => ({
    ...trainingParts(),
    parallel: {
      group: { rank: 0, ranks: [0], allGatherObject: <T>(value: T) => Promise.resolve([value]) },
    },
  });
  const trainingFile = () => {
    transformer.saveTraining(path, trainingParts(), { step: 0 });
    return path;
  };
  return {
    parameterGroups: {
      args: () => [model(), { weightDecay: 0, parts: [] }],
      legal: { 1: 'undefined {}', '1.weightDecay': 'undefined 5', '1.parts': 'undefined []' },
    },
    fit: {
      args: () => [model(), fitOptions()],
      legal: {
        ...{ '1.steps': '5', '1.from': 'undefined', '1.schedule': 'undefined fn', '1.dtype': 'undefined' },
        ...{ '1.accumulate': 'undefined 5', '1.scaler': 'undefined', '1.clip': 'undefined fn' },
        ...{ '1.loss': 'undefined fn', '1.compile': 'undefined {} option duck', '1.parallel': 'undefined' },
      },
      // Its steps are not asked for.
      call: (...given: Parameters<typeof transformer.fit>) => [transformer.fit(...given)],
    },
    'new TrainingFileError': exempt('an error: its message is whatever it is given'),
    saveTraining: {
      args: () => [path, trainingParts(), { step: 0, schedule: {}, metadata: {} }],
      legal: {
        ...{
          0: 'a',
          '2.step': '5',
          '2.schedule': 'undefined null {} option duck',
          '2.metadata': 'undefined {}',
        },
        ...partsLegal,
      },
      undo,
    },
    loadTraining: {
      args: () => [trainingFile(), trainingParts()],
      legal: partsLegal,
      named: `loadTraining|${missing}`,
      undo,
    },
    saveTrainingOnRanks: {
      args: () => [path, oneRank(), { step: 0 }],
      legal: { 0: 'a', '2.step': '5', ...partsLegal },
      undo,
    },
    loadTrainingOnRanks: {
      args: () => [trainingFile(), oneRank()],
      legal: partsLegal,
      named: `loadTrainingOnRanks|loadTraining|${missing}`,
      undo,
    },
    describeTraining: { args: () => [trainingFile()], named: `describeTraining|${missing}`, undo },
  };
}
