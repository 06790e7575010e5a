import { type KernelSpec, type Op, defineOp } from '../../src/index.ts';

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
