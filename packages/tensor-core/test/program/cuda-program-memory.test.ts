import { describe, expect, it } from 'vitest';
import {
  type Tensor,
  applyOne,
  backward,
  compile,
  copy,
  defineOp,
  empty,
  fillInPlace,
  mul,
  ones,
  sum,
  tensor,
} from '../../src/index.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';

describe.skipIf(hostCompilerVersion() === null)('the memory of a program on several streams', () => {
  it('holds no more memory where it is captured on another stream', () => {
    const gpu = openEmulatedDevice(2 ** 28);
    const other = gpu.createStream();
    const weight = ones([2 ** 16], { device: gpu, requiresGrad: true });
    const f = compile((x: Tensor) => backward(sum(mul(mul(weight, weight), x))));
    const x = ones([1], { device: gpu });
    const heldBytes = () => f.explain().at(-1)!.arenaBytes;
    for (let i = 0; i < 3; i++) f(x);
    const before = heldBytes();
    for (let i = 0; i < 3; i++) {
      const { grad } = weight;
      weight.grad = copy(grad!);
      grad!.dispose();
      other.waitFor(gpu.recordEvent());
      if (i % 2 === 0) gpu.onStream(other, () => f(x));
      else f(x);
      gpu.stream.waitFor(other.recordEvent());
      expect(heldBytes()).toBe(before);
    }
    expect(weight.grad!.toFlatArray()[0]).toBe(2 * 6);
    f.dispose();
  });

  it('finds memory for workspaces where other streams have used what is free', () => {
    const mebibyte = 2 ** 20;
    const large = defineOp<undefined>({
      name: 'large',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch(context, [x], [y]) {
          const { dtype, shape, strides } = x!;
          const workspace = { address: context.workspace(16 * mebibyte), dtype, shape, strides };
          context.copy(x!, workspace);
          context.copy(workspace, y!);
        },
      },
      cpu: { kind: 'host', run: () => undefined },
    });
    const gpu = openEmulatedDevice(64 * mebibyte);
    const other = gpu.createStream();
    const x = tensor([1, 2, 3], { device: gpu });
    const f = compile((given: Tensor) => applyOne(large, [given], undefined));
    f(x).dispose();
    gpu.emptyCache();
    const most = empty([14 * mebibyte], { device: gpu, dtype: 'float32' });
    other.waitFor(gpu.recordEvent());
    gpu.onStream(other, () => fillInPlace(most, 1));
    most.dispose();
    for (let i = 0; i < 2; i++) expect(f(x).toFlatArray()).toEqual([1, 2, 3]);
    f.dispose();
  });
});
