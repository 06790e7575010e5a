import { describe, expect, it } from 'vitest';
import { DeviceError } from '../../src/index.ts';
import { checkDeclared, declaredParameters } from '../../src/launch/declared-parameters.ts';

const source = `
// extern "C" __global__ void flip(int commented) {
template <typename T> __device__ void other(T x) {}
extern "C" __global__ void __launch_bounds__(256)
flip(const ELEMENT* __restrict__ x, float* y, const int64 size, unsigned int n,
     Pair<int, float> pair, SCALE scale, double d) {
}
extern "C" __global__ void nothing() {}
`;

const typesOf = (defines = {}) => declaredParameters(source, 'flip', defines)!.map(({ type }) => type);
const specOf = (parameters: string) => ({
  ...{ source: new URL('file:///kernels/flip.cu'), name: 'flip', parameters },
  defines: { ELEMENT: 'float', SCALE: 'float' },
});

describe('the parameters that a source declares', () => {
  it('are read with qualifiers, pointers, templates and macros', () => {
    const plain = ['pointer', 'pointer', 'int64', 'uint32', null];
    expect(typesOf()).toEqual([...plain, null, 'float64']);
    expect(typesOf({ SCALE: 'float' })).toEqual([...plain, 'float32', 'float64']);
    expect(declaredParameters(source, 'flip')!.map(({ name }) => name)).toEqual([
      ...['x', 'y', 'size', 'n', 'pair', 'scale', 'd'],
    ]);
    expect(declaredParameters(source, 'nothing')).toEqual([]);
    expect(declaredParameters(source, 'missing')).toBeNull();
  });

  it('are those of the launch, or the error names the file and the parameter', () => {
    expect(() => checkDeclared(specOf('ppluTfd'), source)).not.toThrow();
    // What is no number that is known may be any.
    expect(() => checkDeclared(specOf('ppluifd'), source)).not.toThrow();
    expect(() => checkDeclared(specOf('ppiuTfd'), source)).toThrow(DeviceError);
    expect(() => checkDeclared(specOf('ppiuTfd'), source)).toThrow(
      /^Kernel flip: flip\.cu declares it with .*parameter 3, `const int64 size`, is int64 there and int32 in the launch/,
    );
    expect(() => checkDeclared(specOf('ppl'), source)).toThrow('7 parameters there, 3 in the launch');
    expect(() => checkDeclared(specOf('ppluTfdd'), source)).toThrow('7 parameters there, 8 in the launch');
  });
});
