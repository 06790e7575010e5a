import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const x = () => t.tensor([0.5, -1.5, 2], { dtype: 'float64' });

const wrongByAFactor = t.defineOp({
  name: 'wrong',
  autocast: 'none',
  infer: ([a]) => [a!],
  gradient: ({ gradients }) => [t.mul(gradients[0]!, 2.001)],
  cuda: { kind: 'pointwise', expressions: () => ['2 * a'] },
  cpu: { kind: 'onnx', build: (graph, [a]) => [graph.node('Add', [a!, a!])] },
});

describe('checkGradients', () => {
  it('accepts a right gradient, and one of 0 where nothing depends on an input', () => {
    t.checkGradients((a, b) => t.mul(a!, t.sin(b!)), [x(), x()]);
    t.checkGradients((a) => t.mul(a!, a!), [x(), x()]);
  });

  it('names the input, the element and both values of a wrong one', () => {
    const fn = (a: t.Tensor, b: t.Tensor) => t.add(a, t.applyOne(wrongByAFactor, [b], undefined));
    expect(() => t.checkGradients(fn as never, [x(), x()])).toThrow(
      /^checkGradients: input 1 \[3\], element 0: backward gives 2\.001, finite differences 2/,
    );
    expect(() => t.checkGradients(fn as never, [x(), x()])).toThrow(t.AutogradError);
    t.checkGradients(fn as never, [x(), x()], { tolerance: 1e-2 });
  });

  it('finds a wrong gradient of any element, and NaN', () => {
    const last = t.tensor([0, 0, 1], { dtype: 'float64' });
    const fn = (a: t.Tensor) => t.applyOne(wrongByAFactor, [t.mul(a, last)], undefined);
    expect(() => t.checkGradients(fn as never, [x()])).toThrow('element 2:');
    expect(() => t.checkGradients((a) => t.log(t.sub(a!, a!)), [x()])).toThrow('NaN');
  });

  it.each(['float32', 'float16', 'bfloat16'] as const)('asks for float64 in place of %s', (dtype) => {
    const low = t.tensor([0.5, 1], { dtype });
    expect(() => t.checkGradients((a, b) => t.mul(a!, b!), [x(), low])).toThrow(
      `checkGradients: input 1 is ${dtype}, whose differences are mostly rounding; cast() it to float64`,
    );
    expect(() => t.checkGradients((a) => t.mul(a!, a!), [low], { epsilon: 2 ** -4 })).toThrow('float64');
    t.checkGradients((a) => t.mul(a!, 2), [low], { epsilon: 2 ** -4, tolerance: 2 ** -3 });
  });

  it('passes integers and bools on as they are', () => {
    const chosen = t.tensor([1, 0, 1], { dtype: 'bool' });
    t.checkGradients((a, which) => t.where(which!, a!, t.mul(a!, a!)), [x(), chosen]);
    t.checkGradients((a, n) => t.mul(a!, n!), [x(), t.tensor([1, 2, 3], { dtype: 'int64' })]);
  });

  it('leaves no storage behind, and refuses options that do not exist', () => {
    const input = x();
    const before = t.device('cpu').memoryStatistics().liveStorages;
    t.checkGradients((a) => t.exp(a!), [input]);
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(before);
    expect(() => t.checkGradients((a) => a!, [input], { epsilo: 1 } as never)).toThrow(
      'checkGradients: there is no option "epsilo"; did you mean "epsilon"?',
    );
  });
});
