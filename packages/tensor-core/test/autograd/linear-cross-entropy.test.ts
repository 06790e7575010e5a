import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { rowsOfChunks } from '../../src/autograd/linear-cross-entropy.ts';
import { describeLinearCrossEntropy } from '../op-cases/nn/linear-cross-entropy.ts';
import { describeOnDevices } from '../op-cases/support/devices.ts';

describeOnDevices((open) => describeLinearCrossEntropy(open));

describe('the chunks of linearCrossEntropy', () => {
  it('take less than a GiB, are about alike and fill tiles', () => {
    const bytesOfRow = 151_936 * 2;
    const rows = rowsOfChunks(32_768, bytesOfRow);
    expect(rows).toBe(3072);
    expect(rows * bytesOfRow).toBeLessThan(2 ** 30);
    expect(rowsOfChunks(3100, bytesOfRow)).toBe(3100);
    expect(rowsOfChunks(3400, bytesOfRow)).toBe(1792);
    expect(rowsOfChunks(7, 2 ** 31)).toBe(1);
    expect(rowsOfChunks(200, 2 ** 24)).toBe(50);
  });

  it('hold one chunk of logits at a time', () => {
    const [rows, features, classes, chunkRows] = [256, 4, 1024, 16];
    const bytes = 4 * chunkRows * classes;
    const draw = (shape: number[], seed: number) =>
      t.randn(shape, { generator: new t.Generator(seed), requiresGrad: true });
    const [x, weight] = [draw([rows, features], 1), draw([classes, features], 2)];
    const targets = t.zeros([rows], { dtype: 'int64' });
    // What earlier tests have left to the garbage collector.
    const before = t.device('cpu').allocatedBytes;
    const record = t.recordMemory(() => {
      t.linearCrossEntropy(x, weight, targets, { chunkRows }).backward();
    });
    const made = t.peakMemory(record)!.bytes - before;
    const gradients = x.byteLength + weight.byteLength;
    expect(made).toBeGreaterThan(bytes + gradients);
    // Part of the weight's gradient is made apart before it is added: no more than the logits, and numbers of rows.
    expect(made).toBeLessThan(2.5 * bytes + gradients);
  });
});
