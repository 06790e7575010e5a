import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { pythonDirectory } from '../../src/paths.ts';
import { torchPython } from '../fixtures/torch.ts';

const event = (cat: string, name: string, ts: number, dur: number, args: Record<string, number> = {}) => ({
  ph: 'X',
  ...{ cat, name, ts, dur, args },
});

/** As Kineto writes it: the host runs ahead of the device, whose kernels of one phase end in the time of the next. */
const trace = [
  event('user_annotation', 'forward', 100, 50),
  event('user_annotation', 'backward', 151, 50),
  event('user_annotation', 'Optimizer.step#AdamW.step', 160, 5),
  event('gpu_user_annotation', 'forward', 140, 60),
  event('cpu_op', 'aten::mm', 105, 10, { 'External id': 1 }),
  event('cuda_runtime', 'cudaLaunchKernel', 110, 5, { correlation: 7 }),
  event('cuda_driver', 'cuLaunchKernelEx', 160, 5, { correlation: 8 }),
  event('cuda_runtime', 'cudaMemcpyAsync', 205, 5, { correlation: 9 }),
  { ph: 'M', name: 'process_name', pid: 0, args: { name: 'python' } },
  event('kernel', 'late', 170, 20, { correlation: 7, stream: 7 }),
  event('kernel', 'gemm', 185, 20.5, { correlation: 8, stream: 7 }),
  event('gpu_memcpy', 'Memcpy DtoH', 210, 1, { correlation: 9, stream: 7 }),
  event('gpu_memset', 'Memset', 220, 1, { stream: 7 }),
];

describe.skipIf(torchPython === null)('kernels of a GPU trace', () => {
  it('belong to the phase that launched them', async () => {
    const program =
      'import json, sys, torch_profile as t; kernels = t.gpu_kernels(json.load(sys.stdin)); ' +
      'print(json.dumps({"busyUs": t.busy_us(kernels), **t.pack(kernels)}))';
    const { stdout } = await execa(torchPython!.executable, ['-B', '-c', program], {
      cwd: pythonDirectory,
      input: JSON.stringify(trace),
    });
    expect(JSON.parse(stdout)).toEqual({
      busyUs: 37.5,
      strings: ['late', 'gemm', 'Memcpy DtoH', 'Memset', 'forward', 'backward'],
      kernels: { name: [0, 1, 2, 3], phase: [4, 5, -1, -1], durationUs: [20, 20.5, 1, 1] },
    });
  });
});
