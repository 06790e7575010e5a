import type { OpEntry } from '../programs/program.ts';
import { copyOps } from './copies.ts';
import { creationOps } from './creation.ts';
import { elementwiseOps } from './elementwise.ts';
import { foldOps } from './folds.ts';
import { indexingOps } from './indexing.ts';
import { matrixOps } from './matrix.ts';
import { nnOps } from './nn.ts';
import { reductionOps } from './reductions.ts';
import { shapeOps } from './shape.ts';

/** Every public op and how it is tried; an op may have several entries. A new op gets its line in one of these. */
export const opTable: readonly OpEntry[] = [
  ...elementwiseOps,
  ...reductionOps,
  ...foldOps,
  ...shapeOps,
  ...copyOps,
  ...matrixOps,
  ...nnOps,
  ...indexingOps,
  ...creationOps,
];

/** Public functions that are not ops on tensors. */
export const notOps: readonly string[] = [
  // Tensors, scopes, devices
  'reportLeaks',
  'keep',
  'isBackwardRunning',
  'scope',
  'byteSize',
  'isFloatingPoint',
  'promote',
  'formatShape',
  'sizeOf',
  'device',
  'fromBits16',
  'toBits16',
  'fromBytes',
  'setCpuThreads',
  'cudaAvailable',
  'cudaDeviceCount',
  'diagnose',
  // How ops are made, run and observed
  'defineOp',
  'defineView',
  'checkOptions',
  'defineFunction',
  'checkpoint',
  'selectiveCheckpoint',
  'enableGrad',
  'onBackwardFinished',
  'apply',
  'applyOne',
  'applyLive',
  'compile',
  'dependOn',
  'exportOnnx',
  'applyView',
  'alias',
  'observeOps',
  'costOf',
  'recordMemory',
  'peakMemory',
  'reservedOverTime',
  'savedForBackward',
  'memorySnapshot',
  'currentRange',
  'onRange',
  'range',
  'profile',
  'rangePath',
  // Modes: autograd (every case runs a backward pass), autocast and precision
  'backward',
  'checkGradients',
  'isGradEnabled',
  'noGrad',
  'autocast',
  'autocastDType',
  'withoutAutocast',
  'getFloat32MatmulPrecision',
  'setFloat32MatmulPrecision',
  // What packages check arguments with
  ...[
    'requireTensor',
    'requireTensors',
    'checkCount',
    'checkNumber',
    'checkFlag',
    'checkText',
    'checkObject',
  ],
  ...['checkFunction', 'checkDType', 'checkDevice', 'checkGenerator', 'describeValue'],
];
