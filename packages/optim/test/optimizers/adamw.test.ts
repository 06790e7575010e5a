import { type Tensor, device, fromTypedArray, mul, tensor, transpose, zeros } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  AdamW,
  type AdamWOptions,
  type OptimizerState,
  OptimizerStateError,
  type ParameterGroup,
} from '../../src/index.ts';
import { parameterOf, setGradient } from '../parameters.ts';
import { type AdamWReference, referenceAdamW, relativeError } from '../reference.ts';

const options: AdamWReference = { learningRate: 3e-3, betas: [0.9, 0.95], eps: 1e-8, weightDecay: 0.1 };

function arraysOf(values: readonly number[]) {
  return {
    p: Float64Array.from(values),
    m: new Float64Array(values.length),
    v: new Float64Array(values.length),
  };
}

describe('AdamW', () => {
  it('follows the rule over many steps, in tensors of many shapes', () => {
    const parameters = [[3], [5, 7], [], [300, 1000]].map((shape, i) => parameterOf(shape, i));
    const references = parameters.map((parameter) => arraysOf(parameter.toFlatArray()));
    const optimizer = new AdamW(parameters, options);
    for (let step = 1; step <= 5; step++) {
      parameters.forEach((parameter, i) => {
        referenceAdamW(references[i]!, setGradient(parameter, 100 * step + i), step, options);
      });
      optimizer.step();
    }
    parameters.forEach((parameter, i) => {
      expect(relativeError(parameter.toFlatArray(), references[i]!.p)).toBeLessThan(3e-7);
    });
  });

  it('has default betas that no optimizer can change for the others', () => {
    const [group] = new AdamW([parameterOf([4], 1)]).groups;
    expect(() => ((group!.betas as [number, number])[0] = 0.5)).toThrow(TypeError);
    expect(new AdamW([parameterOf([4], 1)]).groups[0]!.betas).toEqual([0.9, 0.999]);
  });

  it('takes hyperparameters by group, and counts the steps of each parameter', () => {
    const [decayed, plain, late] = [parameterOf([4], 1), parameterOf([4], 2), parameterOf([4], 3)];
    const optimizer = new AdamW(
      [{ parameters: [decayed] }, { parameters: [plain, late], weightDecay: 0 }],
      options,
    );
    const references = [decayed, plain, late].map((parameter) => arraysOf(parameter.toFlatArray()));
    const optionsOf = [options, { ...options, weightDecay: 0 }, { ...options, weightDecay: 0 }];
    for (let step = 1; step <= 2; step++) {
      [decayed, plain].forEach((parameter, i) => {
        referenceAdamW(references[i]!, setGradient(parameter, step), step, optionsOf[i]!);
      });
      if (step === 2) referenceAdamW(references[2]!, setGradient(late, 9), 1, optionsOf[2]!);
      optimizer.step();
    }
    [decayed, plain, late].forEach((parameter, i) => {
      expect(relativeError(parameter.toFlatArray(), references[i]!.p)).toBeLessThan(3e-7);
    });
  });

  it('leaves a parameter without a gradient alone', () => {
    const parameter = parameterOf([3], 1);
    const before = parameter.toFlatArray();
    new AdamW([parameter], options).step();
    expect(parameter.toFlatArray()).toEqual(before);
  });

  it('changes the learning rate of all groups, and gives that of the first', () => {
    const optimizer = new AdamW([
      { parameters: [parameterOf([1], 1)], learningRate: 0.1 },
      { parameters: [parameterOf([1], 2)], learningRate: 0.2 },
    ]);
    expect(optimizer.learningRate).toBe(0.1);
    optimizer.learningRate = 0.5;
    expect(optimizer.groups.map((group) => group.learningRate)).toEqual([0.5, 0.5]);
    expect(() => (optimizer.learningRate = NaN)).toThrow(/learningRate must .* not NaN/);
    expect(optimizer.learningRate).toBe(0.5);
  });

  it("has PyTorch's defaults", () => {
    const [{ parameters: _, ...hyperparameters }] = new AdamW([parameterOf([2], 1)]).groups as [
      ParameterGroup<AdamWOptions>,
    ];
    expect(hyperparameters).toEqual({
      learningRate: 1e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0.01,
    });
  });

  it('takes bare tensors along with groups, as a last group', () => {
    const [grouped, bare] = [parameterOf([1], 1), parameterOf([1], 2)];
    const mixed = [bare, { parameters: [grouped], eps: 1 }] as unknown as Tensor[];
    const { groups } = new AdamW(mixed, { eps: 2 });
    expect(groups.map(({ parameters, eps }) => [parameters[0], eps])).toEqual([
      [grouped, 1],
      [bare, 2],
    ]);
  });

  it('continues from a saved state as if it had not stopped', () => {
    const runs = [1, 2].map(() => {
      const parameter = parameterOf([6], 1);
      return { parameter, optimizer: new AdamW([parameter], options) };
    });
    const [whole, stopped] = runs as [(typeof runs)[0], (typeof runs)[0]];
    for (const { parameter, optimizer } of runs) {
      setGradient(parameter, 5);
      optimizer.step();
    }
    const continued = new AdamW([stopped.parameter], options);
    continued.loadStateDict(stopped.optimizer.stateDict());
    stopped.optimizer.dispose();
    for (const { parameter, optimizer } of [whole, { parameter: stopped.parameter, optimizer: continued }]) {
      setGradient(parameter, 6);
      optimizer.step();
    }
    expect(stopped.parameter.toFlatArray()).toEqual(whole.parameter.toFlatArray());
    expect(continued.stateDict().metadata).toEqual({ optimizer: 'AdamW', steps: '[2]' });
  });

  it('continues each parameter from its own number of steps', () => {
    const [early, late, never] = [parameterOf([2], 1), parameterOf([2], 2), parameterOf([2], 3)];
    const optimizer = new AdamW([never, early, late], options);
    setGradient(early, 1);
    optimizer.step();
    setGradient(late, 2);
    optimizer.step();
    const restored = new AdamW([never, early, late], options);
    restored.loadStateDict(optimizer.stateDict());
    expect(restored.stateDict().metadata.steps).toBe('[0,2,1]');
    expect(Object.keys(restored.stateDict().tensors)).toEqual(Object.keys(optimizer.stateDict().tensors));
  });

  it('loads its own state, and keeps it when a load fails', () => {
    const parameter = parameterOf([6], 1);
    setGradient(parameter, 5);
    const optimizer = new AdamW([parameter], options);
    optimizer.step();
    const valuesOf = ({ tensors, metadata }: OptimizerState) => ({
      metadata,
      tensors: Object.entries(tensors).map(([name, tensor]) => [name, tensor.toFlatArray()]),
    });
    const before = valuesOf(optimizer.stateDict());
    expect(before.tensors.flat(2)).not.toContain(0);
    const own = optimizer.stateDict();
    optimizer.loadStateDict(own);
    expect(valuesOf(optimizer.stateDict())).toEqual(before);

    const [first, second] = [own.tensors['exp_avg.0']!, own.tensors['exp_avg_sq.0']!];
    const failing: OptimizerState[] = [
      { ...own, tensors: { 'exp_avg.0': first } },
      { ...own, tensors: { ...own.tensors, 'exp_avg.1': first } },
      { ...own, tensors: { ...own.tensors, constructor: first } },
      { ...own, tensors: { 'exp_avg.0': first, 'exp_avg_sq.0': parameterOf([7], 1) } },
      { ...own, metadata: { ...own.metadata, steps: '[-1]' } },
      { ...own, metadata: {} },
    ];
    for (const state of failing) {
      expect(() => optimizer.loadStateDict(state)).toThrow(OptimizerStateError);
      expect(valuesOf(optimizer.stateDict())).toEqual(before);
    }
    second.dispose();
    expect(() => optimizer.loadStateDict(own)).toThrow(/disposed/);
    expect(valuesOf(optimizer.stateDict())).toEqual(before);
  });

  it('refuses the state of another model', () => {
    const [small, large] = [parameterOf([2], 1), parameterOf([3], 1)];
    setGradient(small, 1);
    const optimizer = new AdamW([small]);
    optimizer.step();
    expect(() => new AdamW([large]).loadStateDict(optimizer.stateDict())).toThrow(/exp_avg.0.*\[2\].*\[3\]/);
    expect(() => new AdamW([small, large]).loadStateDict(optimizer.stateDict())).toThrow(OptimizerStateError);
  });

  it('makes no memory in the steady state, and gives all of its own back', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const parameter = parameterOf([10], 1);
    setGradient(parameter, 1);
    const before = live();
    const optimizer = new AdamW([parameter]);
    optimizer.step();
    const after = live();
    for (let step = 0; step < 10; step++) optimizer.step();
    expect(live()).toBe(after);
    expect(after - before).toBe(2);
    optimizer.dispose();
    expect(live()).toBe(before);
    optimizer.zeroGrad();
    expect(parameter.grad).toBeNull();
    expect(live()).toBe(before - 1);
  });

  it.each([
    '',
    'text',
    '[1',
    '[1.5]',
    '[-1]',
    '["1"]',
    '[1,2]',
    'null',
    '[01]',
    `[${'9'.repeat(400)}]`,
    7,
    [1],
    null,
    1n,
  ])('refuses a state with the steps %s', (steps) => {
    const metadata = { optimizer: 'AdamW', steps } as Record<string, string>;
    const state = { tensors: {}, metadata };
    expect(() => new AdamW([parameterOf([2], 1)]).loadStateDict(state)).toThrow(OptimizerStateError);
  });

  it.each(['[ 2,\n\t1 ]', '\r\n[2, 1]\n', '[2.0, 1e0]'])(
    'takes the steps %j, as other writers of JSON have them',
    (steps) => {
      const parameters = [parameterOf([2], 1), parameterOf([2], 2)];
      const optimizer = new AdamW(parameters);
      for (const [i, parameter] of parameters.entries()) setGradient(parameter, i);
      optimizer.step();
      const { tensors } = optimizer.stateDict();
      optimizer.loadStateDict({ tensors, metadata: { optimizer: 'AdamW', steps } });
      expect(optimizer.stateDict().metadata.steps).toBe('[2,1]');
    },
  );

  it('refuses a state without a moment, or of another optimizer', () => {
    const optimizer = new AdamW([parameterOf([2], 1)]);
    const load = (optimizer_: string) =>
      optimizer.loadStateDict({ tensors: {}, metadata: { optimizer: optimizer_, steps: '[1]' } });
    expect(() => load('AdamW')).toThrow(/no tensor "exp_avg.0"; there is no tensor "exp_avg_sq.0"/);
    expect(() => load('SGD')).toThrow(/not that of an AdamW of 1 parameters/);
    expect(optimizer.stateDict()).toEqual({ tensors: {}, metadata: { optimizer: 'AdamW', steps: '[0]' } });
  });

  it('refuses what it cannot update', () => {
    const parameter = parameterOf([2], 1);
    for (const wrong of [undefined, 3, {}, [3], [undefined], [{ parameters: 3 }], [{ parameters: [3] }]]) {
      expect(() => new AdamW(wrong as unknown as Tensor[])).toThrow(/AdamW: takes tensors, or groups/);
    }
    expect(() => new AdamW([transpose(parameterOf([2, 3], 1))])).toThrow(/must be a contiguous leaf/);
    expect(() => new AdamW([mul(parameter, 2)])).toThrow(/must be a contiguous leaf/);
    expect(() => new AdamW([parameter], { betas: [-0.1, 0.9] })).toThrow(/each of betas must .* not -0.1/);
    expect(() => new AdamW([parameter], { eps: -1 })).toThrow(/eps must .* not -1/);
    expect(() => new AdamW([parameter], { weightDecay: -1 })).toThrow(/weightDecay must .* not -1/);
    expect(() => new AdamW([{ parameters: [parameter], weightDecay: -1 }])).toThrow(
      /weightDecay must .* not -1/,
    );
    expect(() => new AdamW([])).toThrow(/no parameters/);
    expect(() => new AdamW([parameter, parameter])).toThrow(/twice/);
    expect(() => new AdamW([zeros([2], { dtype: 'float16' })])).toThrow(/float16.*float32/);
    expect(() => new AdamW([parameter], { learningRate: -1 })).toThrow(/learningRate must .* not -1/);
    expect(() => new AdamW([parameter], { betas: [0.9, 1] })).toThrow(/each of betas must .* not 1/);
    parameter.grad = tensor([1, 2], { dtype: 'float64' });
    expect(() => new AdamW([parameter]).step()).toThrow(/gradient \[2\] is float64/);
    parameter.grad = fromTypedArray(new Float32Array(2), [2]);
  });
});
