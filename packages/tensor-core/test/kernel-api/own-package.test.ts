import { type CudaContext, type Tensor, apply, defineOp, device, scope, tensor } from '@roofline/tensor-core';
import { HostMemory, addressOf, declareFunctions, ffi } from '@roofline/cuda/host';
import { cudaDevice, rowPlan, vectorLength } from '@roofline/tensor-core/kernel-api';
import { kernelVariants, libraries, loadLibrary, packageKernels } from '@roofline/cuda';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';

// A user's package: an op of its own, with a kernel in its own folder, using only the public entry points.
const kernelSource = packageKernels(new URL('softplus-package/src/softplus.js', import.meta.url).href);
const kernel = kernelVariants(kernelSource('softplus_rows.cu'), 'softplus_rows', {
  ...{ x: 'pointer', y: 'pointer', largest: 'pointer' },
  ...{ rows: 'int64', columns: 'int32', scale: 'float32' },
});
const contexts: CudaContext[] = [];

const softplusOp = defineOp<{ scale: number }>({
  name: 'softplusRows',
  autocast: 'float32',
  infer: ([x]) => [x!, { shape: x!.shape.slice(0, -1), dtype: x!.dtype }],
  cuda: {
    kind: 'custom',
    launch(context, [x], [y, largest], { scale }) {
      contexts.push(context);
      const columns = x!.shape.at(-1)!;
      const rows = x!.size / columns;
      const { defines, rowsPerBlock } = rowPlan(x!.dtype, columns, vectorLength(columns, [x!, y!]));
      context.kernel(kernel(defines)).launch(
        [Math.ceil(rows / rowsPerBlock), 1, 1],
        defines.BLOCK_THREADS,
        0,
        kernel.byName({
          ...{ x: x!.address, y: y!.address, largest: largest!.address },
          ...{ rows, columns, scale },
        }),
      );
    },
  },
  cpu: {
    kind: 'host',
    run([x], [y, largest], { scale }) {
      const values = x!.data as Float32Array;
      const columns = x!.shape.at(-1)!;
      for (let i = 0; i < values.length; i++) {
        const value = scale * Math.log1p(Math.exp(values[i]!));
        const row = Math.floor(i / columns);
        y!.data[i] = value;
        largest!.data[row] = i % columns === 0 ? value : Math.max(value, largest!.data[row] as number);
      }
    },
  },
});

function softplusRows(x: Tensor, scale: number): readonly Tensor[] {
  return apply(softplusOp, [x], { scale });
}

const rows = [
  [-3, -1, 0, 0.5, 2],
  [7, 1, -20, 3, 30],
];

function expectSoftplus(x: Tensor): void {
  const [y, largest] = softplusRows(x, 2).map((result) => [
    ...new Float32Array(result.toTypedArray().buffer),
  ]);
  const expected = rows.flat().map((value) => 2 * Math.log1p(Math.exp(value)));
  // float32's exp and log are each within two units in the last place.
  expected.forEach((value, i) =>
    expect(Math.abs(y![i]! - value)).toBeLessThanOrEqual(2 ** -21 * (1 + value)),
  );
  expect(largest).toEqual([y![4], y![9]]);
}

describe('an op from a package of its own', () => {
  it('runs on the CPU', () => {
    scope(() => expectSoftplus(tensor(rows)));
  });

  it.skipIf(!hostCompilerVersion())('runs on the emulated GPU, on a stream of its own', () => {
    const emulated = openEmulatedDevice();
    scope(() => {
      const x = tensor(rows, { device: emulated });
      expectSoftplus(x);
      const gpu = cudaDevice(contexts.at(-1)!);
      expect(gpu).toBe(cudaDevice(x.device));
      const stream = gpu.createStream();
      stream.waitFor(gpu.recordEvent({ timing: false }));
      gpu.onStream(stream, () => expectSoftplus(x));
    });
  });

  it('says that the CPU is no GPU', () => {
    expect(() => cudaDevice(device('cpu'))).toThrow(/cudaDevice: cpu is no GPU/);
  });
});

describe('libraries', () => {
  it('are searched, declared and called', () => {
    const libc = { name: 'libc', files: ['libc.so.6'], remedy: 'It comes with the system.' };
    const { handle, path } = loadLibrary(libc);
    expect(path).toMatch(/libc\.so\.6$/);
    const functions = declareFunctions(
      handle,
      {
        memcpy: 'uintptr_t memcpy(uintptr_t to, uintptr_t from, size_t bytes)',
        absent: 'int roofline_absent(int x)',
      },
      (name) => new RangeError(`no ${name}`),
    );
    const [from, to] = [new HostMemory(64), new HostMemory(64)];
    from.bytes.fill(6);
    functions.memcpy(to.address, from.address, 3);
    expect([...to.bytes.subarray(0, 4)]).toEqual([6, 6, 6, 0]);
    expect(() => functions.absent(1)).toThrow(/no absent/);
    expect(addressOf(to.bytes)).toBe(to.address);
    expect(typeof ffi().load).toBe('function');
    expect(libraries.nccl.files[0]).toBe('libnccl.so.2');
  });

  it('are named with a remedy where they are missing', () => {
    const missing = { name: 'libmissing', files: ['libroofline-missing.so'], remedy: 'Build it first.' };
    expect(() => loadLibrary(missing)).toThrow(/libmissing[^]*Build it first\./);
  });
});
