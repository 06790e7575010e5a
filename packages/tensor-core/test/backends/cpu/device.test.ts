import { expect, test } from 'vitest';
import { openCpuDevice } from '../../../src/backends/cpu/device.ts';
import { findOnnxRuntime } from '../../../src/onnx/find-onnx-runtime.ts';
import { onnxRuntime } from '../../../src/onnx/onnx-runtime.ts';

test('there is one device, and it describes itself', () => {
  const cpu = openCpuDevice();
  expect(openCpuDevice()).toBe(cpu);
  expect(cpu).toMatchObject({ type: 'cpu', index: 0, label: 'cpu' });
  expect(cpu.name).not.toBe('');
  expect(cpu.properties()).toMatchObject({ name: cpu.name, onnxruntime: expect.stringMatching(/^\d+\.\d+/) });
  expect(cpu.properties().threads).toBeGreaterThan(0);
  expect(cpu.memoryStatistics().freeBytes).toBeLessThanOrEqual(cpu.memoryStatistics().totalBytes);
});

test('the loaded library is the one that was found', () => {
  expect(onnxRuntime().version).toBe(findOnnxRuntime().version);
});

test('bytes are copied in and out at offsets', () => {
  const cpu = openCpuDevice();
  const buffer = cpu.allocate(8);
  cpu.write(buffer, 0, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  cpu.write(buffer, 2, Uint8Array.of(9));
  const read = new Uint8Array(3);
  cpu.read(buffer, 1, read);
  expect([...read]).toEqual([2, 9, 4]);
  cpu.free(buffer);
});

test('events measure time', async () => {
  const cpu = openCpuDevice();
  const start = cpu.recordEvent();
  await new Promise((resolve) => setTimeout(resolve, 10));
  cpu.synchronize();
  expect(cpu.recordEvent().elapsedMs(start)).toBeGreaterThan(5);
});
