import { RooflineError, ones } from '@roofline/tensor-core';
import {
  type HostileCall,
  type HostileTable,
  describeHostileArguments,
} from '../../../tooling/hostile-arguments.ts';
import * as flash from '../src/index.ts';

const heads = () => ones([1, 2, 3, 4]);
const chosen = flash.getFlashKernels();

const flag = 'undefined';
const options = () => ({ causal: true, scale: 1, deterministic: true });
const optionsLegal = {
  3: 'undefined {}',
  '3.causal': flag,
  '3.scale': 'undefined 5',
  '3.deterministic': flag,
};
const attention: HostileCall = {
  args: () => [heads(), heads(), heads(), options()],
  legal: optionsLegal,
};

const table: HostileTable = {
  flashAttention: attention,
  flashAttentionWithLse: attention,
  flashAttentionKernels: {
    args: () => [
      { q: [1, 2, 3, 8], k: [1, 2, 3, 8], dtype: 'bfloat16' },
      { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 232448 },
    ],
    legal: {
      2: 'undefined {}',
      '1.computeCapability': '5',
      '1.multiprocessors': '5',
      '1.maxSharedBytesPerBlock': '5',
    },
  },
  tiledAttention: {
    args: () => [heads(), heads(), heads(), { causal: true, scale: 1, blockSize: { queries: 2, keys: 2 } }],
    legal: {
      ...optionsLegal,
      '3.blockSize': 'undefined',
      '3.blockSize.queries': '5',
      '3.blockSize.keys': '5',
    },
    deep: [3],
  },
  flashTileKernel: {
    args: () => [
      { q: [1, 2, 3, 8], k: [1, 2, 3, 8], dtype: 'bfloat16' },
      { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 232448 },
      { queries: 16, keys: 16 },
    ],
    legal: {
      3: 'undefined {}',
      '1.multiprocessors': '5',
    },
    named: 'flashTileKernel|flashAttention',
  },
  setFlashTile: {
    args: () => [{ queries: 16, keys: 16 }],
    legal: { 0: 'null' },
    undo: () => flash.setFlashTile(null),
  },
  getFlashTile: { args: () => [] },
  setFlashKernels: { args: () => ['simt'], undo: () => flash.setFlashKernels(chosen) },
  getFlashKernels: { args: () => [] },
};

describeHostileArguments(flash, table, RooflineError);
