import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openEmulatedDevice } from '../../src/testing/emulated-device.ts';

const common = {
  autocast: 'none',
  infer: ([x]: readonly t.TensorSpec[]) => [{ shape: x!.shape, dtype: x!.dtype }],
} as const;
const onCpu = t.defineOp({
  ...{ ...common, name: 'doubled' },
  cpu: { kind: 'host', run: ([x], [y]) => x!.data.forEach((value, i) => (y!.data[i] = 2 * Number(value))) },
});
const onGpu = t.defineOp({
  ...{ ...common, name: 'halved' },
  cuda: { kind: 'pointwise', expressions: () => ['a / 2'] },
});
const live = () => t.device('cpu').memoryStatistics().liveStorages;

describe('an op for one device', () => {
  it('runs there', () => {
    const gpu = openEmulatedDevice();
    t.scope(() => {
      expect(t.applyOne(onCpu, [t.tensor([1, 2])], undefined).toFlatArray()).toEqual([2, 4]);
      const x = t.tensor([1, 2], { device: gpu });
      expect(t.applyOne(onGpu, [x], undefined).toFlatArray()).toEqual([0.5, 1]);
    });
  });

  it('throws on the other, with its name, the device and the remedy, and keeps no memory', () => {
    const gpu = openEmulatedDevice();
    t.scope(() => {
      const [onHost, onDevice] = [t.ones([2]), t.ones([2], { device: gpu })];
      const before = live();
      const halve = () => t.applyOne(onGpu, [onHost], undefined);
      expect(halve).toThrow(t.DeviceError);
      expect(halve).toThrow(/^halved does not run on the CPU: .*no `cpu`.*toDevice.*defineOp a `cpu`/);
      expect(() => t.applyOne(onCpu, [onDevice], undefined)).toThrow(
        /^doubled does not run on an NVIDIA GPU: .*no `cuda`/,
      );
      expect(live()).toBe(before);
    });
  });

  it('has one device at least', () => {
    expect(() => t.defineOp({ ...common, name: 'nowhere' })).toThrow(
      /nowhere on a device must be given by cuda/,
    );
  });
});
