import { describe, expect, it } from 'vitest';
import { CudaDriver } from '../src/driver/driver.ts';
import { type CudaEvent, EventPool } from '../src/driver/event.ts';
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

describe('a graph of two streams', () => {
  const { functions, queues } = new EmulatedDriver(2 ** 20, () => {}, 1);
  const driver = new CudaDriver(functions, String);
  const parts = { driver, events: new EventPool(driver), makeCurrent: () => {} };
  const [chain, branch] = [new CudaStream(parts), new CudaStream(parts)];
  const letWait = (stream: CudaStream, other: CudaStream) =>
    stream.waitFor(other.recordEvent({ timing: false }));

  /** The orders in which a graph ran what `queue` gave its streams by name. */
  function ordersOf(queue: (give: (stream: CudaStream, name: string) => void) => void): Set<string> {
    let ran = '';
    const graph = CudaGraph.capture(driver, chain, () =>
      queue((stream, name) => queues.push(stream.handle, () => (ran += name))),
    );
    const orders = new Set<string>();
    for (let i = 0; i < 200; i++) {
      ran = '';
      graph.launch(chain);
      chain.synchronize();
      orders.add(ran);
    }
    graph.dispose();
    return orders;
  }

  it('runs in every order that its events allow, and no other', () => {
    const orders = ordersOf((give) => {
      give(chain, 'a');
      letWait(branch, chain);
      give(branch, 'B');
      give(branch, 'C');
      give(chain, 'b');
      letWait(chain, branch);
      give(chain, 'd');
    });
    expect(orders).toEqual(new Set(['aBCbd', 'aBbCd', 'abBCd']));
  });

  it('counts what both were given, and finds the last node of each', () => {
    const counts: number[] = [];
    const nodes: number[] = [];
    const push = (stream: CudaStream) => {
      queues.push(stream.handle, () => {});
      counts.push(CudaGraph.capturedNodes(driver, stream));
      nodes.push(CudaGraph.lastNode(driver, stream));
    };
    const graph = CudaGraph.capture(driver, chain, () => {
      push(chain);
      letWait(branch, chain);
      push(branch);
      push(chain);
      letWait(chain, branch);
    });
    expect(counts).toEqual([1, 2, 3]);
    expect(new Set(nodes).size).toBe(3);
    expect(graph.nodeCount()).toBe(3);
    graph.dispose();
  });

  it('tells kernels, copies and fills from functions of the host, which profilers do not record', () => {
    const graph = CudaGraph.capture(driver, chain, () => {
      for (const isActivity of [false, true, true, false]) queues.push(chain.handle, () => {}, isActivity);
    });
    expect(graph.areActivities()).toEqual([false, true, true, false]);
    expect(graph.nodeCount()).toBe(2);
    graph.dispose();
    const empty = CudaGraph.capture(driver, chain, () => {});
    expect(empty.areActivities()).toEqual([]);
    empty.dispose();
  });

  it('must be joined at its end, after which both streams are free', () => {
    const unjoined = () =>
      CudaGraph.capture(driver, chain, () => {
        letWait(branch, chain);
        queues.push(branch.handle, () => {});
      });
    expect(unjoined).toThrow(/cuStreamEndCapture failed: 904/);
    let ran = 0;
    for (const stream of [chain, branch]) {
      queues.push(stream.handle, () => ran++);
      stream.synchronize();
    }
    expect(ran).toBe(2);
  });

  it('does not wait for what is outside, nor let others wait for what is inside', () => {
    const outside = branch.recordEvent();
    expect(() => CudaGraph.capture(driver, chain, () => chain.waitFor(outside))).toThrow(/failed: 905/);
    let inside!: CudaEvent;
    CudaGraph.capture(driver, chain, () => {
      queues.push(chain.handle, () => {});
      inside = chain.recordEvent();
    }).dispose();
    for (const ask of [() => inside.hasCompleted(), () => inside.synchronize(), () => branch.waitFor(inside)])
      expect(ask).toThrow(/failed: 907/);
  });
});
