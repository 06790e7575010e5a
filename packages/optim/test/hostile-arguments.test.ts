import { RooflineError, type Tensor, ones, zeros } from '@roofline/tensor-core';
import { type HostileTable, describeHostileArguments, exempt } from '../../../tooling/hostile-arguments.ts';
import * as optim from '../src/index.ts';
import { parameterOf } from './parameters.ts';

function parameters(): Tensor[] {
  const parameter = parameterOf([2], 1);
  parameter.grad = ones([2]);
  return [parameter];
}

const internal = exempt('protected: the base class calls it');
const zeroOrMore = 'undefined 5';
/** One rank that has all gradients. */
const alone: optim.GradientRanks = { sum() {}, max() {} };

function stateOf(optimizer: { stateDict(): optim.OptimizerState; step(): void }): optim.OptimizerState {
  optimizer.step();
  return optimizer.stateDict();
}

const adamW = () => new optim.AdamW(parameters());
const sgd = () => new optim.SGD(parameters(), { momentum: 0.5 });
const scaler = () => new optim.GradientScaler();
const adamWOptions = () => ({ learningRate: 1, betas: [0.9, 0.99], eps: 1, weightDecay: 0 });
const sgdOptions = () => ({ learningRate: 1, momentum: 0.5, weightDecay: 0, nesterov: true });
const legalOptions = {
  '1': 'undefined {}',
  '1.learningRate': zeroOrMore,
  '1.weightDecay': zeroOrMore,
  '1.eps': zeroOrMore,
  '1.betas': 'undefined',
  '1.momentum': '5',
  '1.nesterov': 'undefined',
};

const falling = () => ({ maximum: 1, minimum: 0, warmupSteps: 1, totalSteps: 2 });
const fallingLegal = {
  ...{ '0.maximum': '5', '0.minimum': 'undefined', '0.warmupSteps': 'undefined', '0.totalSteps': '5' },
};

const table: HostileTable = {
  'new AdamW': { args: () => [parameters(), adamWOptions()], legal: legalOptions },
  'AdamW#update': internal,
  'AdamW#freeState': internal,
  'AdamW#stateDict': { args: () => [adamW()] },
  'AdamW#loadStateDict': { args: () => [adamW(), stateOf(adamW())] },
  'new SGD': { args: () => [parameters(), sgdOptions()], legal: legalOptions },
  'SGD#update': internal,
  'SGD#freeState': internal,
  'SGD#stateDict': { args: () => [sgd()] },
  'SGD#loadStateDict': { args: () => [sgd(), stateOf(sgd())], legal: { '1.tensors': '{}' } },
  'new Optimizer': exempt('abstract: its kind comes from the class that extends it'),
  'Optimizer#parameters': { args: () => [sgd()] },
  'Optimizer#learningRate=': { args: () => [sgd(), 1], legal: { 1: '5' } },
  'Optimizer#zeroGrad': { args: () => [sgd()] },
  'Optimizer#step': { args: () => [sgd()] },
  'Optimizer#stepUnless': { args: () => [sgd(), zeros([])] },
  'Optimizer#dispose': { args: () => [sgd()] },
  'Optimizer#assertAlive': internal,
  'new OptimizerStateError': exempt('an error: its message is whatever it is given'),
  'new GradientScaler': {
    args: () => [
      {
        initialScale: 2,
        growthFactor: 2,
        backoffFactor: 0.5,
        growthInterval: 1,
        enabled: true,
        ranks: alone,
      },
    ],
    legal: {
      '0': 'undefined {}',
      '0.initialScale': zeroOrMore,
      '0.growthFactor': zeroOrMore,
      '0.backoffFactor': 'undefined',
      '0.growthInterval': zeroOrMore,
      '0.enabled': 'undefined',
      '0.ranks': 'undefined',
      '0.ranks.sum': 'fn',
      '0.ranks.max': 'fn',
    },
  },
  'GradientScaler#scale': { args: () => [scaler(), ones([])] },
  'GradientScaler#unscale': { args: () => [scaler(), sgd()] },
  'GradientScaler#step': { args: () => [scaler(), sgd()] },
  'GradientScaler#hasSkipped': {
    args: () => {
      const [optimizer, stepped] = [sgd(), scaler()];
      stepped.step(optimizer);
      return [stepped, optimizer];
    },
  },
  'GradientScaler#update': exempt('takes nothing, and wants a step before it'),
  'GradientScaler#stateDict': { args: () => [scaler()] },
  'GradientScaler#loadStateDict': {
    args: () => [scaler(), { scale: 2, growthTracker: 1 }],
    legal: { '1.scale': '5', '1.growthTracker': '5' },
  },
  'GradientScaler#dispose': { args: () => [scaler()] },
  clipGradientNorm: {
    args: () => [parameters(), 1, { ranks: { ...alone, counts: () => true } }],
    legal: {
      1: '5 Infinity',
      2: 'undefined {}',
      '2.ranks': 'undefined',
      '2.ranks.sum': 'fn',
      '2.ranks.max': 'fn',
      '2.ranks.counts': 'undefined fn',
    },
  },
  cosineSchedule: { args: () => [falling()], legal: fallingLegal },
  linearSchedule: { args: () => [falling()], legal: fallingLegal },
  wsdSchedule: {
    args: () => [{ ...falling(), decaySteps: 1 }],
    legal: { ...fallingLegal, '0.decaySteps': 'undefined' },
  },
  constantSchedule: {
    args: () => [{ maximum: 1, warmupSteps: 1 }],
    legal: { '0.maximum': '5', '0.warmupSteps': 'undefined 5' },
  },
  scheduleOf: {
    args: () => [{ kind: 'cosine', ...falling() }],
    legal: fallingLegal,
    named: 'scheduleOf|cosineSchedule',
  },
};

describeHostileArguments(optim, table, RooflineError);
