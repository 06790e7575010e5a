// Times linearCrossEntropy beside the products that it cannot do without, and counts the memory that it takes beside operands and
// gradients: node --conditions=roofline-source packages/tensor-core/examples/time-linear-cross-entropy.ts [ROWS] [CLASSES] [FEATURES] [DEVICE]
import {
  autocast,
  compile,
  device as open,
  keep,
  linear,
  linearCrossEntropy,
  matmul,
  randint,
  randn,
  scope,
  transpose,
} from '@roofline/tensor-core';
import type { Tensor } from '@roofline/tensor-core';

const [rows = 32_768, classes = 151_936, features = 4096] = process.argv.slice(2, 5).map(Number);
const device = open((process.argv[5] ?? 'cuda') as 'cuda');
const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(3);

const x = randn([rows, features], { device });
const low = keep(scope(() => x.to('bfloat16'))).requiresGrad_();
x.dispose();
const weight = keep(scope(() => randn([classes, features], { device }).mul(0.02)))
  .detach()
  .requiresGrad_();
const targets = randint(0, classes, [rows], { device, dtype: 'int64' });

const forget = () => {
  for (const leaf of [low, weight]) {
    leaf.grad?.dispose();
    leaf.grad = null;
  }
};
const loss = () => {
  forget();
  const value = autocast('bfloat16', () => linearCrossEntropy(low, weight, targets));
  value.backward();
  return value.detach();
};

/** The three products of head and loss, whole, on operands of the same shapes. */
const products = () => {
  const lowWeight = weight.detach().to('bfloat16');
  const logits = linear(low.detach(), lowWeight);
  const ofX = matmul(logits, lowWeight);
  const ofWeight = matmul(transpose(logits), low.detach(), { dtype: 'float32' });
  return [ofX, ofWeight];
};

function milliseconds(run: () => void, times = 5): number[] {
  return Array.from({ length: times }, () => {
    const start = device.recordEvent();
    run();
    return device.recordEvent().elapsedMs(start);
  });
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const called = (fn: () => Tensor | Tensor[]) => () => scope(() => void fn());
const compiledLoss = compile(loss);
const compiledProducts = compile(products);
const contenders = {
  'products, eager': called(products),
  'linearCrossEntropy, eager': called(loss),
  'products, compiled': called(compiledProducts),
  'linearCrossEntropy, compiled': called(compiledLoss),
};

// What is there when it begins, and what it leaves: the rest of the peak is its own.
for (const run of Object.values(contenders)) for (let i = 0; i < 3; i++) run();
forget();
compiledLoss.dispose();
compiledProducts.dispose();
device.synchronize();
const before = device.allocatedBytes;
device.resetPeakMemory();
contenders['linearCrossEntropy, eager']();
device.synchronize();
const gradients = low.grad!.byteLength + weight.grad!.byteLength;
const cast = classes * features * 2;
const beside = device.memoryStatistics().peakAllocatedBytes - before - gradients - cast;
console.log(
  `eager, beside operands, the weight's cast (${gib(cast)} GiB) and gradients (${gib(gradients)} GiB): ${gib(beside)} GiB`,
);

const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, [] as number[]]));
for (const run of Object.values(contenders)) for (let i = 0; i < 3; i++) run();
for (let round = 0; round < 5; round++)
  for (const [name, run] of Object.entries(contenders)) times[name]!.push(...milliseconds(run, 2));
for (const [name, values] of Object.entries(times)) console.log(`${name}: ${median(values).toFixed(2)} ms`);
for (const way of ['eager', 'compiled']) {
  const ratio = median(times[`linearCrossEntropy, ${way}`]!) / median(times[`products, ${way}`]!);
  console.log(`${way}: ${ratio.toFixed(3)} of the products' time`);
}
const arena = compiledLoss.explain().at(-1)!.arenaBytes;
console.log(
  `compiled: arena and copies of ${gib(arena)} GiB, of which gradients and the weight's cast are ${gib(gradients + cast)} GiB`,
);
