// Is alone in a process: observers and hooks that its calls add stay there.
import { rmSync } from 'node:fs';
import {
  type HostileCall,
  type HostileTable,
  describeHostileArguments,
  exempt,
} from '../../../tooling/hostile-arguments.ts';
import * as t from '../src/index.ts';
import { opMethods } from '../src/tensor-methods.ts';

const x = () => t.tensor([[1, 2], [3, 4]]); // prettier-ignore
const leaf = () => x().requiresGrad_();
const row = () => t.tensor([1, 2]);
const ids = () => t.tensor([0, 1], { dtype: 'int32' });
const bools = () => t.tensor([[1, 0], [0, 1]], { dtype: 'bool' }); // prettier-ignore
const typedArray = () => Float32Array.of(1, 2);

const internal = exempt('internal: ops and the tape call it');
const anything = 'undefined null 5 a {} [] NaN Infinity symbol 1n fn option duck';

/** A function of these arguments and no more. */
function takes(args: () => readonly unknown[], legal: HostileCall['legal'] = {}): HostileCall {
  return { args, legal, takesNoMore: true };
}

/** A function whose last arguments are options, or whose options are unknown. */
function given(args: () => readonly unknown[], legal: HostileCall['legal'] = {}): HostileCall {
  return { args, legal };
}

const numbers = '5 NaN Infinity';
const unary = takes(() => [x()]);
const binary = takes(() => [x(), x()], { 0: numbers, 1: numbers });
const flag = 'undefined';
const creationOptions = () => ({ dtype: 'float32', device: 'cpu', requiresGrad: false });
const creationLegal = (at: number) => ({
  [at]: 'undefined {}',
  [`${at}.dtype`]: 'undefined',
  [`${at}.device`]: 'undefined',
  [`${at}.requiresGrad`]: 'undefined',
});
const randomOptions = () => ({ ...creationOptions(), generator: new t.Generator(0) });
const randomLegal = (at: number) => ({ ...creationLegal(at), [`${at}.generator`]: 'undefined' });
const lossLegal = (at: number, name: string) => ({ [at]: 'undefined {}', [`${at}.${name}`]: 'undefined 5' });
const reduction: HostileCall = given(() => [x(), { dims: 0, keepDims: true }], {
  1: 'undefined {}',
  '1.dims': 'undefined []',
  '1.keepDims': flag,
});
const position: HostileCall = given(reduction.args, { ...reduction.legal, '1.dims': 'undefined' });
const spread: HostileCall = given(() => [x(), { dims: 0, keepDims: true, correction: 1 }], {
  ...reduction.legal,
  '1.correction': 'undefined 5',
});
const ofSoftmax: HostileCall = given(() => [x(), 0, { dtype: 'float32' }], {
  1: 'undefined',
  2: 'undefined {}',
  '2.dtype': 'undefined',
});
const runs = (legal = 'fn'): HostileCall => given(() => [() => {}], { 0: legal });
const viewDefinition = { name: 'applyView', autocast: 'none', layout: (input: t.Layout) => input } as const;
const view = t.defineView<undefined>(viewDefinition);
const opDefinition: Parameters<typeof t.defineOp>[0] = {
  name: 'apply',
  autocast: 'none',
  infer: ([a]) => [a!],
  cuda: { kind: 'pointwise', expressions: () => ['a'] },
  cpu: { kind: 'onnx', build: (graph, [a]) => [graph.node('Identity', [a!])] },
};
// Attributes may be anything: none of them selects a kernel.
const op = t.defineOp({ ...opDefinition, variant: () => '' });
const check = exempt('a check: its own names come from the code that calls it');
const errors = Object.keys(t).filter((name) => name.endsWith('Error'));
const error = exempt('an error: its message is whatever it is given');

t.neg(x());

const internalsOf = (type: string, names: string) =>
  Object.fromEntries(names.split(' ').map((name) => [`${type}#${name}`, internal]));

const table: HostileTable = {
  // Errors
  ...Object.fromEntries(errors.map((name) => [`new ${name}`, error])),

  // Tensors and their memory
  'new Tensor': internal,
  'Tensor.allocate': internal,
  'Tensor#setHistory': internal,
  'Tensor#moveTo': internal,
  'Tensor#ownershipChanged': internal,
  'Tensor#assertAlive': internal,
  'Tensor#requiresGrad_': given(() => [x(), true], { 1: 'undefined' }),
  'Tensor#onGradientAccumulated': given(() => [leaf(), () => {}, { compiles: false }], {
    1: 'fn',
    2: 'undefined {}',
    '2.compiles': flag,
  }),
  'Tensor#setGradientBuffer': given(() => [leaf(), x()], { 1: 'null' }),
  'Tensor#dispose': given(() => [x()]),
  'Tensor#backward': given(() => [t.mul(leaf(), 2), x(), { retainGraph: false }], {
    2: 'undefined {}',
    '2.retainGraph': flag,
  }),
  'Tensor#detach': given(() => [x()]),
  'Tensor#toTypedArray': given(() => [x()]),
  'Tensor#toFlatArray': given(() => [x()]),
  'Tensor#toArray': given(() => [x()]),
  'Tensor#item': given(() => [t.tensor(1)]),
  'Tensor#toString': given(() => [x()]),
  'Tensor#to': given(() => [x(), 'float64']),
  'Tensor#grad=': given(() => [x(), x()], { 1: 'null' }),
  'new Storage': internal,
  ...internalsOf(
    'Storage',
    'retain release buffer= addHandle dropHandle watch unwatch hold holdsOn noteUnderWay keepMemory letGo bringBack moveIn noteWrite joinWrite leaveWrite writtenSince parameterAround',
  ),
  keep: given(() => [x()]),
  scope: runs(),
  reportLeaks: { ...given(() => [null], { 0: 'null fn' }), undo: () => t.reportLeaks(null) },
  device: given(() => ['cpu']),
  byteSize: given(() => ['float32']),
  isFloatingPoint: given(() => ['float32']),
  promote: given(() => ['float32', 'int32']),
  formatShape: given(() => [[2, 3]], { 0: '[]' }),
  sizeOf: given(() => [[2, 3]], { 0: '[]' }),
  toBits16: given(() => ['float16', 1], { 1: numbers }),
  fromBits16: given(() => ['float16', 1], { 1: '5' }),

  // Creation
  arange: given(() => [0, 2, 1, creationOptions()], {
    0: '',
    1: 'undefined 5',
    2: 'undefined 5',
    ...creationLegal(3),
  }),
  empty: given(() => [[2], creationOptions()], { 0: '[]', ...creationLegal(1) }),
  eye: given(() => [2, 2, creationOptions()], { 0: '5', 1: 'undefined 5', ...creationLegal(2) }),
  fromBytes: given(() => [new Uint8Array(8), [2], creationOptions()], creationLegal(2)),
  fromTypedArray: given(() => [typedArray(), [2], creationOptions()], creationLegal(2)),
  full: given(() => [[2], 1, creationOptions()], { 0: '[]', 1: numbers, ...creationLegal(2) }),
  linspace: given(() => [0, 1, 3, creationOptions()], { 0: '5', 1: '5', 2: '5', ...creationLegal(3) }),
  ones: given(() => [[2], creationOptions()], { 0: '[]', ...creationLegal(1) }),
  onesLike: given(() => [x(), creationOptions()], creationLegal(1)),
  tensor: given(() => [[1, 2], creationOptions()], { 0: '5 [] NaN Infinity', ...creationLegal(1) }),
  zeros: given(() => [[2], creationOptions()], { 0: '[]', ...creationLegal(1) }),
  zerosLike: given(() => [x(), creationOptions()], creationLegal(1)),
  randint: given(() => [0, 2, [2], { ...randomOptions(), dtype: 'int64' }], {
    1: '5',
    2: '[]',
    ...randomLegal(3),
  }),
  randn: given(() => [[2], { ...randomOptions(), mean: 0, std: 1 }], {
    0: '[]',
    ...randomLegal(1),
    '1.mean': 'undefined 5',
    '1.std': 'undefined 5',
  }),
  truncatedNormal: given(() => [[2], { ...randomOptions(), mean: 0, std: 1, low: -2, high: 2 }], {
    0: '[]',
    ...randomLegal(1),
    '1.mean': 'undefined 5',
    '1.std': 'undefined 5',
    '1.low': 'undefined',
    '1.high': 'undefined 5',
  }),
  uniform: given(() => [[2], { ...randomOptions(), low: 0, high: 1 }], {
    0: '[]',
    ...randomLegal(1),
    '1.low': 'undefined',
    '1.high': 'undefined 5',
  }),
  'new Generator': given(() => [0, 0], { 0: '5', 1: 'undefined 5' }),
  'Generator#take': given(() => [new t.Generator(0), 4], { 1: '5' }),
  'Generator#offset=': given(() => [new t.Generator(0), 4], { 1: '5' }),
  'Generator#mark': internal,
  'Generator#takePlace': internal,
  'Generator#manualSeed': given(() => [new t.Generator(0), 4], { 1: '5' }),
  'Generator#stateDict': given(() => [new t.Generator(0)]),
  'Generator#loadStateDict': given(() => [new t.Generator(0), { seed: 1, offset: 2 }], {
    '1.seed': '5',
    '1.offset': '5',
  }),

  // Element by element
  abs: unary,
  cos: unary,
  exp: unary,
  gelu: {
    args: () => [x(), { approximate: 'tanh' }],
    legal: { 1: 'undefined {}', '1.approximate': 'undefined' },
  },
  log: unary,
  neg: unary,
  relu: unary,
  rsqrt: unary,
  sigmoid: unary,
  sign: unary,
  silu: unary,
  sin: unary,
  sqrt: unary,
  tanh: unary,
  logicalNot: unary,
  add: binary,
  div: binary,
  maximum: binary,
  minimum: binary,
  mul: binary,
  pow: binary,
  sub: binary,
  equal: binary,
  greater: binary,
  greaterEqual: binary,
  less: binary,
  lessEqual: binary,
  notEqual: binary,
  clamp: given(() => [x(), { min: 0, max: 1 }], {
    '1.min': `undefined ${numbers}`,
    '1.max': `undefined ${numbers}`,
  }),
  where: takes(() => [bools(), x(), x()], { 1: numbers, 2: numbers }),
  cast: takes(() => [x(), 'float64']),
  dropout: given(() => [x(), { p: 0.5, training: true, generator: new t.Generator(0) }], {
    1: 'undefined {}',
    '1.p': 'undefined',
    '1.training': flag,
    '1.generator': 'undefined',
  }),

  // Copies
  alias: unary,
  contiguous: unary,
  copy: unary,
  addInPlace: takes(() => [x(), x()]),
  copyInPlace: takes(() => [x(), x()]),
  fillInPlace: takes(() => [x(), 1], { 1: numbers }),
  toDevice: takes(() => [x(), t.device('cpu')]),

  // Shapes
  chunk: takes(() => [x(), 2, 0], { 1: '5', 2: 'undefined' }),
  concat: takes(() => [[x(), x()], 0], { 1: 'undefined' }),
  expand: takes(() => [t.tensor(1), [2]], { 1: '[]' }),
  flatten: takes(() => [x(), 0, 1], { 1: 'undefined', 2: 'undefined' }),
  permute: takes(() => [x(), [1, 0]]),
  reshape: takes(() => [x(), [4]]),
  select: takes(() => [x(), 0, 0]),
  slice: takes(() => [x(), 0, 0, 1, 1], { 2: 'undefined 5', 3: 'undefined 5', 4: 'undefined 5' }),
  split: takes(() => [x(), 1, 0], { 1: '5', 2: 'undefined' }),
  squeeze: takes(() => [x(), 0]),
  stack: takes(() => [[x(), x()], 0], { 1: 'undefined' }),
  transpose: takes(() => [x(), 0, 1], { 1: 'undefined', 2: 'undefined' }),
  tril: takes(() => [x(), 0], { 1: 'undefined 5' }),
  causalMask: unary,
  unsqueeze: takes(() => [x(), 0]),
  view: takes(() => [x(), [4]]),

  // Reductions
  all: reduction,
  any: reduction,
  max: reduction,
  mean: reduction,
  min: reduction,
  sum: reduction,
  argmax: position,
  argmin: position,
  cumsum: takes(() => [x(), 0]),
  std: spread,
  var: spread,
  variance: { ...spread, named: 'var' },
  topk: given(() => [x(), 1, { dimension: 0, largest: true }], {
    2: 'undefined {}',
    '2.dimension': 'undefined',
    '2.largest': flag,
  }),

  // Products, indices, networks
  einsum: given(() => ['ij,jk->ik', x(), x()]),
  linear: takes(() => [x(), x()]),
  matmul: given(() => [x(), x(), { scale: 1, dtype: 'float32' }], {
    2: 'undefined {}',
    '2.scale': `undefined ${numbers}`,
    '2.dtype': 'undefined',
  }),
  embedding: takes(() => [x(), ids()]),
  gather: takes(() => [row(), 0, ids()]),
  indexCopyInPlace: takes(() => [x(), 0, ids(), x()]),
  crossEntropy: given(() => [x(), ids(), { ignoreIndex: -100 }], lossLegal(2, 'ignoreIndex')),
  linearCrossEntropy: given(() => [x(), x(), ids(), { ignoreIndex: -100, chunkRows: 1 }], {
    ...lossLegal(3, 'chunkRows'),
    ...lossLegal(3, 'ignoreIndex'),
  }),
  layerNorm: takes(() => [x(), row(), row(), 1e-5], { 3: 'undefined 5' }),
  rmsNorm: given(() => [x(), row(), 1e-5, { dtype: 'float32' }], {
    2: 'undefined 5',
    3: 'undefined {}',
    '3.dtype': 'undefined',
  }),
  logSoftmax: ofSoftmax,
  softmax: given(() => [x(), -1, { dtype: 'float32', causal: false }], {
    1: 'undefined',
    2: 'undefined {}',
    '2.dtype': 'undefined',
    '2.causal': 'undefined',
  }),
  rope: takes(() => [x(), t.ones([2, 1]), t.ones([2, 1])]),
  swiglu: takes(() => [x(), x()]),

  // Autograd
  backward: given(() => [t.mul(leaf(), 2), x(), { retainGraph: false }], {
    2: 'undefined {}',
    '2.retainGraph': flag,
  }),
  onBackwardFinished: given(() => [() => {}, () => {}, { compiles: false }], {
    0: 'fn',
    1: 'undefined fn',
    2: 'undefined {}',
    '2.compiles': flag,
  }),
  checkGradients: given(() => [t.neg, [x().to('float64')], { epsilon: 1e-6, tolerance: 1e-5 }], {
    2: 'undefined {}',
    '2.epsilon': 'undefined 5',
    '2.tolerance': 'undefined 5',
  }),
  checkpoint: given(() => [t.neg, x()]),
  selectiveCheckpoint: given(() => [() => true, t.neg, x()], { 0: 'fn' }),
  defineFunction: given(
    () => [{ name: 'neg', forward: (_: unknown, a: t.Tensor) => t.neg(a), backward: () => null }],
    {
      '0.forward': 'fn',
      '0.backward': 'fn',
      '0.name': 'a',
    },
  ),
  enableGrad: runs(),
  noGrad: runs(),
  isGradEnabled: given(() => []),
  isBackwardRunning: given(() => []),
  autocast: given(() => ['bfloat16', () => {}], { 1: 'fn' }),
  autocastDType: given(() => []),
  withoutAutocast: runs(),

  // Ops and their observers
  apply: { ...given(() => [op, [x()], undefined, [x()]], { 2: anything, 3: 'undefined []' }), whole: [0] },
  applyOne: {
    ...given(() => [op, [x()], undefined, x()], { 2: anything, 3: 'undefined null' }),
    whole: [0],
    named: 'apply',
  },
  applyLive: { ...given(() => [op, [x()], () => undefined], { 2: 'fn' }), whole: [0], named: 'apply' },
  applyView: { ...given(() => [view, x()]), whole: [0] },
  defineOp: given(() => [opDefinition], {
    ...{ '0.name': 'a', '0.infer': 'fn', '0.cuda': 'undefined', '0.cpu': 'undefined' },
  }),
  defineView: given(() => [viewDefinition], { '0.name': 'a', '0.layout': 'fn' }),
  costOf: { ...given(() => [op, [x()], [x()], undefined], { 1: '[]', 2: '[]', 3: anything }), whole: [0] },
  compile: {
    ...given(() => [() => x(), { cacheSize: 1, autotune: false, branches: 'auto', memoryBudget: 1 }], {
      ...{ 0: 'fn', 1: 'undefined {}', '1.cacheSize': 'undefined 5', '1.autotune': flag },
      '1.branches': 'undefined',
      '1.memoryBudget': 'undefined 5',
    }),
  },
  exportOnnx: {
    ...given(
      () => ['/dev/null', (a: t.Tensor) => t.mul(a, 2), [x()], { inputNames: ['x'], outputNames: ['y'] }],
      {
        0: 'a',
        3: 'undefined {}',
        '3.inputNames': 'undefined',
        '3.outputNames': 'undefined',
      },
    ),
    undo: () => rmSync('a', { force: true }),
  },
  dependOn: given(() => [() => 1], { 0: 'fn' }),
  observeOps: given(() => [{}], { 0: '{}' }),
  onRange: given(() => [{ enter: () => {}, exit: () => {} }], { '0.enter': 'fn', '0.exit': 'fn' }),
  range: given(() => ['a range', () => {}], { 0: 'a', 1: 'fn' }),
  currentRange: given(() => []),
  profile: given(() => [() => {}], { 0: 'fn' }),
  rangePath: { ...given(() => [{ ranges: [] }, null], { 1: 'null' }), whole: [0] },
  recordMemory: given(() => [() => {}, { device: 'cpu', stackDepth: 1 }], {
    0: 'fn',
    1: 'undefined {}',
    '1.device': 'undefined',
    '1.stackDepth': 'undefined 5',
  }),
  memorySnapshot: { ...given(() => [t.recordMemory(() => {})]), whole: [0] },
  peakMemory: { ...given(() => [t.recordMemory(() => {}), 'forward'], { 1: 'undefined a' }), whole: [0] },
  reservedOverTime: { ...given(() => [t.recordMemory(() => {})]), whole: [0] },
  savedForBackward: given(() => [x()]),

  // What other packages check arguments with
  requireTensor: check,
  checkDType: check,
  checkDevice: check,
  checkGenerator: check,
  requireTensors: check,
  checkCount: check,
  checkFlag: check,
  checkFunction: check,
  checkNumber: check,
  checkObject: check,
  checkOptions: check,
  checkText: check,
  describeValue: given(() => [1], { 0: anything }),

  // Devices
  // They have started already.
  setCpuThreads: given(() => [1]),
  getFloat32MatmulPrecision: given(() => []),
  setFloat32MatmulPrecision: given(() => ['highest']),
  cudaAvailable: given(() => []),
  cudaDeviceCount: given(() => []),
  diagnose: given(() => []),
};

/** Methods that are ops take what these take. */
const ofOps = Object.fromEntries(Object.keys(opMethods).map((name) => [`Tensor#${name}`, table[name]!]));

describeHostileArguments(t, { ...table, ...ofOps }, t.RooflineError);
