import { expect, it } from 'vitest';
import { CudaDriver } from '../src/driver/driver.ts';
import { EventPool } from '../src/driver/event.ts';
import { CudaStream } from '../src/driver/stream.ts';
import { CudaGraph } from '../src/graph.ts';
import { EmulatedDriver } from '../src/testing/emulated-driver.ts';

it('a capture that throws leaves no graph, and its stream to others', () => {
  const { functions } = new EmulatedDriver(2 ** 20, () => {}, 1);
  let [made, destroyed] = [0, 0];
  const driver = new CudaDriver(
    {
      ...functions,
      cuStreamEndCapture: (...given) => {
        made++;
        return functions.cuStreamEndCapture(...given);
      },
      cuGraphDestroy: (...given) => {
        destroyed++;
        return functions.cuGraphDestroy(...given);
      },
    },
    String,
  );
  const stream = new CudaStream({ driver, events: new EventPool(driver), makeCurrent: () => {} });
  expect(() =>
    CudaGraph.capture(driver, stream, () => {
      throw new Error('stop');
    }),
  ).toThrow('stop');
  expect([made, destroyed]).toEqual([1, 1]);
  CudaGraph.capture(driver, stream, () => {}).dispose();
  expect([made, destroyed]).toEqual([2, 2]);
});
