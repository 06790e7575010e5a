// Compiles a training step in its own process, as soon as it is signalled; see processes.ts.
import { once } from 'node:events';
import {
  type Tensor,
  add,
  addInPlace,
  compile,
  device as openDevice,
  matmul,
  mean,
  mul,
  noGrad,
  scope,
  softmax,
  tensor,
} from '../../../src/index.ts';
import { openEmulatedDevice } from '../../../src/testing.ts';

const [where] = process.argv.slice(2);
const device = where === 'emulated' ? openEmulatedDevice() : openDevice(where as 'cpu' | `cuda:${number}`);
const steps = 4;

const numbers = (rows: number, columns: number, step: number) =>
  Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (_, j) => Math.sin(1 + (i * columns + j) * step)),
  );

/** The bits of the losses and of the weights after some steps. */
function train(isCompiled: boolean): string {
  const x = tensor(numbers(4, 8, 0.7), { device });
  const w = tensor(numbers(8, 8, 0.3), { device, requiresGrad: true });
  const step = (): Tensor =>
    scope(() => {
      const y = softmax(add(mul(matmul(x, w), 2), x));
      const loss = mean(mul(y, y));
      loss.backward();
      noGrad(() => addInPlace(w, mul(w.grad!, -0.5)));
      w.grad!.dispose();
      w.grad = null;
      return loss.detach();
    });
  const run = isCompiled ? compile(step) : step;
  const losses = Array.from({ length: steps }, () => run());
  return [...losses, w].map((each) => Buffer.from(each.toTypedArray().buffer).toString('hex')).join(' ');
}

process.stdout.write('ready\n');
await once(process.stdin, 'data');
const compiled = train(true);
process.stdout.write(`${JSON.stringify({ compiled, eager: train(false) })}\n`);
process.exit(0);
