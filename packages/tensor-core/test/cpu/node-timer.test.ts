import { expect, it } from 'vitest';
import { readRuns } from '../../src/cpu/node-timer.ts';

const node = (name: string, dur: number) => ({
  cat: 'Node',
  name: `${name}_1_kernel_time`,
  dur,
  args: { op_name: name },
});
const ended = { cat: 'Session', name: 'model_run', dur: 9, args: {} };

it('reads the nodes of each run out of what ONNX Runtime writes', () => {
  const trace = [
    { cat: 'Session', name: 'session_initialization', dur: 150, args: {} },
    { cat: 'Node', name: 'Mul_1_fence_before', dur: 0, args: { op_name: 'Mul' } },
    node('Mul', 3),
    node('Add', 2),
    ended,
    node('Mul', 5),
    node('Add', 1),
    ended,
  ];
  expect(readRuns(JSON.stringify(trace))).toEqual([
    [
      { opType: 'Mul', durationUs: 3 },
      { opType: 'Add', durationUs: 2 },
    ],
    [
      { opType: 'Mul', durationUs: 5 },
      { opType: 'Add', durationUs: 1 },
    ],
  ]);
});
