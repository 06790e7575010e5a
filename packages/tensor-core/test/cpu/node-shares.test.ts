import { expect, it } from 'vitest';
import { nodeShares, sharesOf } from '../../src/cpu/node-shares.ts';

const node = (name: string, dur: number) => ({
  cat: 'Node',
  name: `${name}_1_kernel_time`,
  dur,
  args: { op_name: name },
});
const ended = { cat: 'Session', name: 'model_run', dur: 9, args: {} };

it('divides the time over the nodes as ONNX Runtime timed them, but for the first run', () => {
  const trace = [
    { cat: 'Session', name: 'session_initialization', dur: 150, args: {} },
    { cat: 'Node', name: 'Mul_1_fence_before', dur: 7, args: { op_name: 'Mul' } },
    ...[node('Mul', 100), node('Add', 1), ended],
    ...[node('Mul', 4), node('Add', 1), ended],
    ...[node('Mul', 2), node('Add', 1), ended],
  ];
  expect(sharesOf(JSON.stringify(trace))).toEqual([
    { opType: 'Mul', share: 0.75 },
    { opType: 'Add', share: 0.25 },
  ]);
});

it('divides evenly what is too quick to tell', () => {
  const trace = [node('Mul', 3), node('Add', 3), ended, node('Mul', 0), node('Add', 0), ended];
  expect(sharesOf(JSON.stringify(trace)).map(({ share }) => share)).toEqual([0.5, 0.5]);
});

it('tells a graph that divides integers as a whole: zeros would end the process', () => {
  const session = {
    opTypes: ['Cast', 'Div'],
    dividesIntegers: true,
    encodeModel: () => new Uint8Array(),
    replay: () => expect.unreachable(),
  };
  expect(nodeShares(session)).toEqual([{ opType: 'Cast Div', share: 1 }]);
});
