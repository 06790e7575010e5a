import {
  type Device,
  DeviceError,
  DisposedError,
  ShapeError,
  type Tensor,
  add,
  backward,
  compile,
  copy,
  copyInPlace,
  device as deviceOf,
  fromTypedArray,
  keep,
  mul,
  noGrad,
  scope,
  slice,
  sum,
  zeros,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  AdamW,
  GradientScaler,
  type Optimizer,
  OptimizerStateError,
  SGD,
  clipGradientNorm,
} from '../src/index.ts';
import { makesStep, parameterOf, setGradient, slicesOfOne } from './parameters.ts';
import { worstRoundings } from './reference.ts';

const kinds: readonly [name: string, make: (parameters: Tensor[]) => Optimizer<{ learningRate: number }>][] =
  [
    ['AdamW', (parameters) => new AdamW(parameters, { learningRate: 0.1 })],
    ['SGD', (parameters) => new SGD(parameters, { learningRate: 0.1, momentum: 0.9 })],
  ];

const values = (tensors: readonly Tensor[]) => tensors.map((tensor) => tensor.toFlatArray());

/** What is disposed, viewed, empty or missing: right results or errors of ours, and no storage left behind. */
export function describeLifetimes(device: Device): void {
  const live = () => device.memoryStatistics().liveStorages;

  describe.each(kinds)('the lifetimes of %s', (_, make) => {
    it('are the same inside and outside scopes, and leave no storage', () => {
      const before = live();
      const train = (frame: (step: () => void) => void) => {
        const parameters = [
          parameterOf([3, 2], 1, device),
          parameterOf([5], 2, device),
          parameterOf([0], 3, device),
        ];
        const optimizer = make(parameters);
        for (let step = 0; step < 4; step++) {
          frame(() => {
            for (const parameter of parameters) backward(sum(mul(parameter, parameter)));
            clipGradientNorm(parameters, 1).dispose();
            optimizer.step();
            optimizer.zeroGrad();
          });
        }
        const result = values(parameters);
        for (const owner of [...parameters, optimizer]) owner.dispose();
        return result;
      };
      const inside = train((step) => scope(step));
      expect(live()).toBe(before);
      expect(inside).toEqual(scope(() => train((step) => step())));
      expect(inside[0]).not.toEqual(scope(() => parameterOf([3, 2], 1).toFlatArray()));
      expect(live()).toBe(before);
    });

    it('pass over parameters without a gradient, and free no memory of theirs', () => {
      const before = live();
      const [used, unused] = [parameterOf([3], 1, device), parameterOf([4], 2, device)];
      const [usedBefore, unusedBefore] = values([used, unused]);
      const optimizer = make([unused, used]);
      setGradient(used, 1);
      optimizer.step();
      expect(unused.toFlatArray()).toEqual(unusedBefore);
      expect(used.toFlatArray()).not.toEqual(usedBefore);
      for (const owner of [used, unused, optimizer]) owner.dispose();
      expect(live()).toBe(before);
    });

    it('keep a flat buffer of parameters and one of gradients alive only by their slices', () => {
      const before = live();
      const [p, g] = [slicesOfOne([4, 6], 0, 1, device), slicesOfOne([4, 6], 1, 2, device)];
      p.whole.dispose();
      g.whole.dispose();
      const parameters = p.slices.map((part, i) => {
        part.grad = g.slices[i]!;
        return part.requiresGrad_();
      });
      const optimizer = make(parameters);
      optimizer.step();
      optimizer.zeroGrad();
      expect(live()).toBe(before + 1 + 4 / (optimizer instanceof AdamW ? 1 : 2));
      for (const owner of [...parameters, optimizer]) owner.dispose();
      expect(live()).toBe(before);
    });

    it('write nothing at all if one gradient is unfit', () => {
      const parameters = [parameterOf([4], 1, device), parameterOf([2, 3], 2, device)];
      const [first, second] = parameters as [Tensor, Tensor];
      const optimizer = make(parameters);
      const start = values(parameters);
      setGradient(first, 1);
      const unfit: (readonly [grad: Tensor, error: RegExp])[] = [
        [zeros([3, 2], { device }), /gradient is \[3, 2\], its parameter \[2, 3\]/],
        [zeros([6], { device }), /gradient is \[6\], its parameter \[2, 3\]/],
        [zeros([2], { device }), /gradient is \[2\], its parameter \[2, 3\]/],
        ...(device.type === 'cpu' ? [] : [[zeros([2, 3]), /is on cpu, its parameter on cuda:0/] as const]),
        [slice(zeros([2, 6], { device }), 1, 0, 6, 2), /\[2, 3\] is float32, not contiguous/],
        [zeros([2, 3], { device, dtype: 'float64' }), /\[2, 3\] is float64/],
        [disposed(zeros([2, 3], { device })), /after it had been disposed/],
      ];
      for (const [grad, error] of unfit) {
        second.grad = grad;
        expect(() => optimizer.step()).toThrow(error);
        expect(() => clipGradientNorm(parameters, 1)).toThrow(error);
        expect(values([first, second, first.grad!])).toEqual([...start, values([first.grad!])[0]]);
      }
      second.grad = zeros([3, 2], { device });
      expect(() => optimizer.step()).toThrow(ShapeError);
    });

    it.skipIf(device.type === 'cpu')('update parameters of several devices, in any order', () => {
      const train = (first: Device, second: Device) => {
        const [a, b, c] = [
          parameterOf([3], 1, first),
          parameterOf([4], 2, first),
          parameterOf([5], 3, second),
        ];
        for (const parameter of [a, b, c]) setGradient(parameter, 1);
        make([a, c, b]).step();
        return values([a, b, c]);
      };
      const cpu = deviceOf('cpu');
      const expected = train(cpu, cpu);
      for (const [first, second] of [
        [cpu, device],
        [device, cpu],
      ] as const)
        train(first, second).forEach((ours, i) =>
          expect(worstRoundings(ours as number[], expected[i] as number[])).toBeLessThan(16),
        );
    });

    it.skipIf(device.type === 'cpu')('write nothing where what skips a step is on another device', () => {
      const parameters = [parameterOf([3], 1), parameterOf([3], 1, device)];
      for (const parameter of parameters) setGradient(parameter, 1);
      const before = values(parameters);
      expect(() => make(parameters).stepUnless(zeros([]))).toThrow(
        /stepUnless: skip is on cpu, and a parameter \[3\] on cuda:0; .*an optimizer for each device/,
      );
      expect(values(parameters)).toEqual(before);
    });

    it('end with dispose: no step, no state, but no error at the second time', () => {
      const before = live();
      const parameter = parameterOf([3], 1, device);
      setGradient(parameter, 1);
      const optimizer = make([parameter]);
      optimizer.step();
      optimizer.dispose();
      optimizer.dispose();
      const after = parameter.toFlatArray();
      expect(() => optimizer.step()).toThrow(/\.step: the optimizer was used after it had been disposed/);
      expect(() => optimizer.step()).toThrow(DisposedError);
      expect(() => optimizer.stateDict()).toThrow(/\.stateDict: /);
      expect(() => optimizer.loadStateDict({ tensors: {}, metadata: {} })).toThrow(/\.loadStateDict: /);
      expect(parameter.toFlatArray()).toEqual(after);
      parameter.dispose();
      expect(live()).toBe(before);
    });

    it('end with their parameters: a step names the one that is gone', () => {
      const before = live();
      const parameters = [parameterOf([3], 1, device), parameterOf([4], 2, device)];
      const optimizer = make(parameters);
      for (const parameter of parameters) setGradient(parameter, 1);
      optimizer.step();
      const [first, second] = parameters as [Tensor, Tensor];
      second.dispose();
      const after = first.toFlatArray();
      expect(() => optimizer.step()).toThrow(
        /a parameter: a tensor \[4\] float32 was used after it had been disposed/,
      );
      expect(first.toFlatArray()).toEqual(after);
      expect(() => make(parameters)).toThrow(DisposedError);
      expect(() => clipGradientNorm(parameters, 1)).toThrow(DisposedError);
      first.dispose();
      optimizer.dispose();
      expect(live()).toBe(before);
    });

    it("give states whose handles are the caller's, and take their own state back", () => {
      const parameter = parameterOf([3], 1, device);
      setGradient(parameter, 1);
      const optimizer = make([parameter]);
      optimizer.step();
      const state = optimizer.stateDict();
      const saved = values(Object.values(state.tensors));
      optimizer.loadStateDict(state);
      for (const tensor of Object.values(state.tensors)) tensor.dispose();
      expect(values(Object.values(optimizer.stateDict().tensors))).toEqual(saved);
      const later = optimizer.stateDict();
      optimizer.step();
      optimizer.dispose();
      // A state is live until its optimizer ends, and outlives it.
      expect(values(Object.values(later.tensors))).not.toEqual(saved);
    });

    it.each(['by steps', 'by steps that the device may skip', 'by a compiled step'])(
      'give states that are kept while training goes on, %s, and are of one step all the same',
      (how) => {
        const training = () => {
          const parameter = parameterOf([3], 1, device);
          setGradient(parameter, 1);
          return { parameter, optimizer: make([parameter]) };
        };
        const [run, twin] = [training(), training()];
        const skip = zeros([], { device });
        const stepOf = ({ optimizer }: typeof run) =>
          how === 'by steps that the device may skip' ? optimizer.stepUnless(skip) : optimizer.step();
        const step = how === 'by a compiled step' ? compile(() => stepOf(run)) : () => stepOf(run);
        step();
        const early = run.optimizer.stateDict();
        for (let i = 0; i < 3; i++) step();
        const late = run.optimizer.stateDict();
        expect(early.metadata).toEqual(late.metadata);
        expect(values(Object.values(early.tensors))).toEqual(values(Object.values(late.tensors)));
        noGrad(() => copyInPlace(twin.parameter, run.parameter));
        twin.optimizer.loadStateDict(early);
        const { metadata } = twin.optimizer.stateDict();
        expect(metadata).toEqual(early.metadata);
        for (const each of [run, twin]) stepOf(each);
        expect(twin.parameter.toFlatArray()).toEqual(run.parameter.toFlatArray());
        // It ends with its optimizer, or where that loads another, and stays what it was.
        const saved = [values(Object.values(early.tensors)), { ...early.metadata }];
        run.optimizer.loadStateDict(early);
        stepOf(run);
        expect([values(Object.values(early.tensors)), early.metadata]).toEqual(saved);
        const last = run.optimizer.stateDict();
        const savedLast = [values(Object.values(last.tensors)), { ...last.metadata }];
        run.optimizer.dispose();
        expect([values(Object.values(last.tensors)), last.metadata]).toEqual(savedLast);
      },
    );

    it('leave no storage with their states', () => {
      const before = live();
      const parameter = parameterOf([3], 1, device);
      setGradient(parameter, 1);
      const optimizer = make([parameter]);
      optimizer.step();
      const withState = live();
      scope(() => optimizer.loadStateDict(optimizer.stateDict()));
      expect(live()).toBe(withState);
      optimizer.dispose();
      parameter.dispose();
      expect(live()).toBe(before);
    });

    it('keep their state when another does not fit, and name all that is wrong', () => {
      const [small, large] = [parameterOf([3], 1, device), parameterOf([4], 1, device)];
      for (const parameter of [small, large]) setGradient(parameter, 1);
      const [ours, theirs] = [make([small]), make([large])];
      ours.step();
      theirs.step();
      const saved = values(Object.values(ours.stateDict().tensors));
      const state = theirs.stateDict();
      const extra = { ...state, tensors: { ...state.tensors, other: small } };
      expect(() => ours.loadStateDict(extra)).toThrow(
        /is \[4\], its parameter \[3\].*"other" belongs to no parameter/,
      );
      const whole = Object.fromEntries(
        Object.keys(state.tensors).map((name) => [name, zeros([3], { device, dtype: 'int32' })]),
      );
      expect(() => ours.loadStateDict({ ...state, tensors: whole })).toThrow(/is int32, not floating-point/);
      const gone = Object.fromEntries(
        Object.keys(state.tensors).map((name) => [name, disposed(zeros([3], { device }))]),
      );
      expect(() => ours.loadStateDict({ ...state, tensors: gone })).toThrow(DisposedError);
      expect(values(Object.values(ours.stateDict().tensors))).toEqual(saved);
    });

    it('take a state from another device and dtype', () => {
      const [here, there] = [parameterOf([3], 1, device), parameterOf([3], 1)];
      for (const parameter of [here, there]) setGradient(parameter, 1);
      const [ours, theirs] = [make([here]), make([there])];
      theirs.step();
      const { tensors, metadata } = theirs.stateDict();
      const wide = Object.fromEntries(
        Object.entries(tensors).map(([name, tensor]) => [name, tensor.to('float64')]),
      );
      ours.loadStateDict({ tensors: wide, metadata });
      const loaded = Object.values(ours.stateDict().tensors);
      expect(values(loaded)).toEqual(values(Object.values(tensors)));
      expect(loaded.every((tensor) => tensor.device === device && tensor.dtype === 'float32')).toBe(true);
      const [name, first] = Object.entries(wide)[0]!;
      const beyond = { ...wide, [name]: add(first, 1e39) };
      const before = device.memoryStatistics().liveStorages;
      const load = () => ours.loadStateDict({ tensors: beyond, metadata });
      expect(load).toThrow(OptimizerStateError);
      expect(load).toThrow(`.loadStateDict: "${name}" holds 1e+39 in float64, which is beyond float32`);
      expect(values(Object.values(ours.stateDict().tensors))).toEqual(values(loaded));
      expect(device.memoryStatistics().liveStorages).toBe(before);
    });
  });

  describe('the lifetimes of GradientScaler', () => {
    it('leave no storage after update or dispose, and count no step that failed', () => {
      const before = live();
      const parameter = parameterOf([3], 1, device);
      setGradient(parameter, 1);
      const [optimizer, scaler] = [new SGD([parameter]), new GradientScaler()];
      const withGradient = live();
      const ownState = 2;
      scaler.step(optimizer);
      scaler.update();
      expect(live()).toBe(withGradient + ownState);
      scaler.unscale(optimizer);
      expect(live()).toBe(withGradient + ownState + 1);
      scaler.dispose();
      expect(live()).toBe(withGradient);
      expect(scaler.stateDict()).toEqual({ scale: 65536, growthTracker: 1 });
      parameter.grad!.dispose();
      expect(() => scaler.unscale(optimizer)).toThrow(DisposedError);
      setGradient(parameter, 1);
      // Neither the failed unscale nor a failed step stands in the way of the next.
      scaler.unscale(optimizer);
      const gradient = parameter.grad!;
      parameter.grad = disposed(zeros([3], { device }));
      expect(() => scaler.step(optimizer)).toThrow(DisposedError);
      parameter.grad = gradient;
      expect(() => scaler.update()).toThrow(/call step\(\) first/);
      expect(makesStep(scaler, optimizer)).toBe(true);
      scaler.update();
      scaler.dispose();
      parameter.dispose();
      expect(live()).toBe(before);
    });
  });

  it.skipIf(device.type === 'cpu')(
    'a scaler stays on the device of its first use until it is disposed',
    () => {
      const [here, there] = [parameterOf([], 1, device), parameterOf([], 1)];
      const scaler = new GradientScaler({ initialScale: 4 });
      expect(scaler.scale(here).item()).toBe(4 * here.item());
      expect(() => scaler.scale(there)).toThrow(DeviceError);
      setGradient(there, 1);
      expect(() => scaler.unscale(new SGD([there]))).toThrow(
        /the scale is on cuda:0, .* and the tensor on cpu/,
      );
      scaler.dispose();
      expect(scaler.scale(there).item()).toBe(4 * there.item());
    },
  );

  it('gradients may be views that a copy of the parameter shares', () => {
    const parameter = parameterOf([2, 3], 1, device);
    const flat = fromTypedArray(new Float32Array(8).fill(1), [8], { device });
    parameter.grad = scope(() => keep(slice(flat, 0, 1, 7).detach()));
    expect(() => new SGD([parameter]).step()).toThrow(/gradient is \[6\], its parameter \[2, 3\]/);
    const kept = noGrad(() => copy(parameter)).toFlatArray();
    expect(parameter.toFlatArray()).toEqual(kept);
  });
}

function disposed(tensor: Tensor): Tensor {
  tensor.dispose();
  return tensor;
}
