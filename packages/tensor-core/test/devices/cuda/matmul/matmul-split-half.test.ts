import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import { describeMatmul } from '../../../op-cases/generic.ts';
import { hostCompilerVersion } from '../../../../src/testing/emulated-device.ts';
import { openSplitHalfDevice } from './emulated-split-half.ts';

describe.skipIf(!hostCompilerVersion())('SplitHalfProduct, emulated', () => {
  const { device, product } = openSplitHalfDevice();
  it('x', () => { expect(product).toBeDefined(); });
  describeMatmul(() => device);
});
