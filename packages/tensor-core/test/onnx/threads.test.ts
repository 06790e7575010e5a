// Is alone in a process: the number of threads of ops is fixed once per process.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import {
  coresOf,
  cpuThreads,
  fixCpuThreads,
  setCpuThreads,
  threadsFromEnvironment,
} from '../../src/onnx/threads.ts';
import { DeviceError } from '@roofline/cuda/host';

test('ROOFLINE_CPU_THREADS', () => {
  expect(threadsFromEnvironment({})).toBeNull();
  expect(threadsFromEnvironment({ ROOFLINE_CPU_THREADS: '3' })).toBe(3);
  expect(() => threadsFromEnvironment({ ROOFLINE_CPU_THREADS: 'many' })).toThrow(
    /ROOFLINE_CPU_THREADS: .* not the text "many"/,
  );
});

test('more threads than any processor has are refused, which ONNX Runtime would start one by one', () => {
  expect(threadsFromEnvironment({ ROOFLINE_CPU_THREADS: '1024' })).toBe(1024);
  expect(() => threadsFromEnvironment({ ROOFLINE_CPU_THREADS: '1025' })).toThrow(DeviceError);
  expect(() => setCpuThreads(1e9)).toThrow(
    'setCpuThreads: takes a whole number of threads from 1 to 1024, not 1000000000.',
  );
});

test('hardware threads of one core count once', () => {
  const processor = (socket: number, core: number) =>
    `physical id\t: ${socket}\ncpu cores\t: 2\ncore id\t\t: ${core}\n`;
  expect(coresOf([processor(0, 0), processor(0, 1), processor(0, 0), processor(0, 1)].join('\n'))).toBe(2);
  expect(coresOf([processor(0, 0), processor(1, 0)].join('\n'))).toBe(2);
  expect(coresOf('processor\t: 0\n')).toBe(0);
});

test('the number is fixed once threads have started', () => {
  setCpuThreads(1);
  expect(cpuThreads()).toBe(1);
  expect(fixCpuThreads()).toBe(1);
  setCpuThreads(1);
  expect(() => setCpuThreads(2)).toThrow(DeviceError);
  expect(() => setCpuThreads(0)).toThrow(/whole number of threads/);
});

test.runIf(process.platform === 'linux')(
  'the device opens, allocates and copies without ONNX Runtime',
  () => {
    const script = `
    import { readFileSync } from 'node:fs';
    import { openCpuDevice } from ${JSON.stringify(new URL('../../src/backends/cpu/device.ts', import.meta.url).href)};
    const cpu = openCpuDevice();
    cpu.write(cpu.allocate(64), 0, new Uint8Array(64));
    console.log(/libonnxruntime/.test(readFileSync('/proc/self/maps', 'utf8')));`;
    const output = execFileSync(
      process.execPath,
      ['--conditions=roofline-source', '--input-type=module', '--eval', script],
      {
        encoding: 'utf8',
      },
    );
    expect(output.trim()).toBe('false');
  },
);
