import { type DType, type Device, addInPlace, cast, full, noGrad, scope, zeros } from '@roofline/tensor-core';

interface Experiment {
  readonly name: string;
  readonly sum: DType;
  readonly addend: DType;
  /** Whether the addend is cast to the sum's dtype before it is added. */
  readonly castFirst?: boolean;
}

/** 1,000 times 0.01: the rounding of 0.01 and of each sum show what a dtype loses. */
const experiments: readonly Experiment[] = [
  { name: 'float32 += float32', sum: 'float32', addend: 'float32' },
  { name: 'float16 += float16', sum: 'float16', addend: 'float16' },
  { name: 'float32 += float16', sum: 'float32', addend: 'float16' },
  { name: 'float32 += float16 as float32', sum: 'float32', addend: 'float16', castFirst: true },
];
const additions = 1000;
const addendValue = 0.01;

/** What each experiment gives on `device`. */
export function accumulate(device: Device): { device: string; experiment: string; sum: number }[] {
  return experiments.map(({ name, sum: dtype, addend, castFirst = false }) =>
    noGrad(() =>
      scope(() => {
        const sum = zeros([], { device, dtype });
        const small = full([], addendValue, { device, dtype: addend });
        for (let i = 0; i < additions; i++) {
          scope(() => addInPlace(sum, castFirst ? cast(small, dtype) : small));
        }
        return { device: device.label, experiment: name, sum: sum.item() };
      }),
    ),
  );
}
