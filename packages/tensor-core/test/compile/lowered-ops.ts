import { type KernelSpec, type Op, type Tensor, apply, defineOp } from '../../src/index.ts';
import { cudaDevice } from '../../src/kernel-api.ts';

/** An op whose inputs autocast casts, as for matrix products, as one element-wise kernel. */
export const lowProduct: Op<undefined> = defineOp({
  name: 'lowProduct',
  autocast: 'lower',
  infer: ([a]) => [a!],
  cuda: { kind: 'pointwise', expressions: () => ['a * b'] },
  cpu: { kind: 'onnx', build: (graph, [a, b]) => [graph.node('Mul', [a!, b!])] },
});

export const halveKernel: KernelSpec = {
  source: new URL('halve.cu', import.meta.url),
  name: 'halve',
  parameters: 'ppl',
};

/** In place, with a copy in bfloat16 where one is wanted. */
export const halve: Op<undefined> = defineOp({
  name: 'halve',
  autocast: 'none',
  infer: ([x]) => [x!],
  mutates: [0],
  cuda: {
    kind: 'custom',
    rewrites: { copied: 1 },
    launch(context, [x], _, __, fused) {
      const addresses = [x!.address, fused?.copies?.[0]?.address ?? 0];
      context.kernel(halveKernel).launch([1, 1, 1], 32, 0, [...addresses, x!.size]);
    },
  },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Mul', [x!, graph.scalar('float32', 0.5)])] },
});

/** Multiplies by a factor that is computed before each run. */
export const scaled: Op<{ readonly factor: number }> = defineOp({
  name: 'scaled',
  autocast: 'none',
  infer: ([x]) => [x!],
  scalars: ({ factor }) => [factor],
  variant: () => '',
  cuda: { kind: 'pointwise', expressions: () => ['a * s0'] },
  cpu: { kind: 'onnx', build: (graph, [x], _, { scalars }) => [graph.node('Mul', [x!, scalars[0]!])] },
});

const copiedOp = defineOp<null>({
  name: 'copied',
  autocast: 'none',
  infer: ([x]) => [x!],
  variant: () => '',
  cuda: {
    kind: 'custom',
    launch(context, [x], [y]) {
      const gpu = cudaDevice(context);
      const [workspace, scratch] = [context.workspace(x!.byteLength), gpu.scratch('copied', x!.byteLength)];
      gpu.stream.copy(workspace, x!.address, x!.byteLength);
      gpu.stream.copy(scratch, workspace, x!.byteLength);
      context.fillBytes(workspace, 0xff, x!.byteLength);
      gpu.stream.copy(y!.address, scratch, x!.byteLength);
    },
  },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});

/** A copy through a workspace, and through memory that its kernels share with those of other calls on their stream. */
export const throughScratch = (x: Tensor): Tensor => apply(copiedOp, [x], null)[0]!;
