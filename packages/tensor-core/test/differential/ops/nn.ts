import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { type OpEntry, python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import {
  type TensorInput,
  drawLength,
  drawMostlyFloat,
  drawShape,
  drawTensor,
} from '../programs/tensor-input.ts';
import { drawDimension, tensorOf, withoutOverflow } from './operands.ts';

const softmax = (name: string, ours: (x: Tensor, dimension: number) => Tensor, torch: string): OpEntry => ({
  name,
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const shape = random.chance(0.02) ? [2, random.integer(1000, 5000)] : drawShape(random);
    const dtype = drawMostlyFloat(random);
    const values = random.chance(0.1) ? 'offset' : withoutOverflow(dtype);
    const x = drawTensor(random, { dtype, shape, values });
    const dimension = drawDimension(random, x.shape.length);
    return {
      operands: [x],
      ours: ([x]) => ours(tensorOf(x), dimension),
      torch: ([x]) => `${torch}(${x}, ${dimension})`,
      terms: Math.max(1, x.shape.at(dimension) ?? 1),
    };
  },
});

const softmaxTo: OpEntry = {
  ...softmax('softmax', t.softmax, ''),
  keepsFloat32: true,
  draw: (random) => {
    const dtype = random.pick<DType>(['float32', 'float16', 'bfloat16', 'float64']);
    return {
      operands: [
        drawTensor(random, {
          dtype: drawMostlyFloat(random),
          shape: drawShape(random, 1),
          values: 'ordinary',
        }),
      ],
      ours: ([x]) => t.softmax(tensorOf(x), -1, { dtype }),
      torch: ([x]) => `torch.softmax(wide(${x}), -1).to(${x}.dtype).to(${dtype})`,
      terms: 5,
    };
  },
};

const causalSoftmax: OpEntry = {
  ...softmax('softmax', t.softmax, ''),
  draw: (random) => {
    const [rows, columns] = [random.integer(1, 40), random.integer(0, 40)];
    const shape = [2, rows, rows + columns];
    return {
      operands: [drawTensor(random, { dtype: drawMostlyFloat(random), shape, values: 'ordinary' })],
      ours: ([x]) => t.softmax(tensorOf(x), -1, { causal: true }),
      torch: ([x]) =>
        `torch.softmax(${x}.masked_fill(~torch.ones(${rows}, ${rows + columns}, dtype=torch.bool).tril(${columns}), float('-inf')), -1)`,
      terms: rows + columns,
    };
  },
};

/** The dtype of a norm's weight: its input's, or float32 with bfloat16, as under autocast. */
function drawWeightDType(random: RandomSource, dtype: DType): DType {
  return dtype === 'bfloat16' && random.chance(0.3) ? 'float32' : dtype;
}

/** An input of a norm, without values whose squares overflow where there is no wider reference. */
function drawNormed(random: RandomSource, squares: boolean): TensorInput {
  const dtype = drawMostlyFloat(random);
  const values = !squares || dtype === 'float64' ? random.pick(['ordinary', 'powers'] as const) : 'any';
  const shape = random.chance(0.02) ? [2, random.integer(1000, 5000)] : drawShape(random, 1);
  return drawTensor(random, { dtype, shape, values: random.chance(0.2) ? 'offset' : values });
}

const layerNorm: OpEntry = {
  name: 'layerNorm',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const x = drawNormed(random, true);
    const columns = x.shape.at(-1)!;
    const parameter = {
      dtype: drawWeightDType(random, x.dtype),
      shape: [columns],
      values: 'ordinary',
    } as const;
    const eps = random.pick([1e-5, 1e-3, 1e-12]);
    return {
      operands: [x, drawTensor(random, parameter), drawTensor(random, parameter)],
      ours: ([x, weight, bias]) => t.layerNorm(tensorOf(x), tensorOf(weight), tensorOf(bias), eps),
      torch: ([x, weight, bias]) =>
        `layer_norm(wide(${x}), [${columns}], wide(${weight}), wide(${bias}), ${python(eps)}).to(${x}.dtype)`,
      terms: Math.max(1, ...x.shape),
    };
  },
};

const rmsNorm: OpEntry = {
  name: 'rmsNorm',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const x = drawNormed(random, false);
    const parameter = {
      dtype: drawWeightDType(random, x.dtype),
      shape: [x.shape.at(-1)!],
      values: 'ordinary',
    } as const;
    const eps = random.pick([1e-5, 1e-3, 1e-12]);
    const low = random.chance(0.2) && x.dtype !== 'float64';
    const dtype = low ? random.pick<DType>(['float16', 'bfloat16', 'float32']) : undefined;
    return {
      operands: [x, drawTensor(random, parameter)],
      ours: ([x, weight]) => t.rmsNorm(tensorOf(x), tensorOf(weight), eps, dtype ? { dtype } : {}),
      torch: ([x, weight]) => `rms_norm(${x}, ${weight}, ${python(eps)}, ${dtype ?? `${x}.dtype`})`,
      terms: Math.max(1, ...x.shape),
    };
  },
};

const linearCrossEntropy: OpEntry = {
  name: 'linearCrossEntropy',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const [rows, features, classes] = [random.integer(1, 6), random.integer(1, 5), random.integer(1, 9)];
    // In low precision PyTorch for the CPU does not round the logits.
    const dtype = random.pick<DType>(['float32', 'float64']);
    const [x, weight] = [
      [rows, features],
      [classes, features],
    ].map((shape) => drawTensor(random, { dtype, shape, values: 'ordinary' }));
    const ids = Array.from({ length: rows }, () =>
      random.chance(0.2) ? -100 : random.integer(0, classes - 1),
    );
    const chunkRows = random.integer(1, rows);
    return {
      operands: [x!, weight!, indexInput(ids, [rows], random.chance(0.3) ? 'int32' : 'int64')],
      ours: ([a, b, y]) => t.linearCrossEntropy(tensorOf(a), tensorOf(b), tensorOf(y), { chunkRows }),
      torch: ([a, b, y]) => `linear_cross_entropy(${a}, ${b}, ${y}.long())`,
      terms: rows * classes * features,
    };
  },
};

const crossEntropy: OpEntry = {
  name: 'crossEntropy',
  rule: 'accumulated',
  eitherZero: true,
  // The loss of low-precision logits is float32.
  keepsFloat32: true,
  draw: (random) => {
    const [rows, classes] = [random.integer(1, 6), random.integer(1, 9)];
    const dtype = drawMostlyFloat(random);
    const logits = drawTensor(random, { dtype, shape: [rows, classes], values: withoutOverflow(dtype) });
    const ignoreIndex = random.chance(0.5) ? -100 : random.integer(0, classes - 1);
    const ids = Array.from({ length: rows }, () => {
      if (random.chance(0.02)) return random.pick([classes, -1, -classes]);
      return random.chance(0.2) ? ignoreIndex : random.integer(0, classes - 1);
    });
    const targets = indexInput(
      ids,
      [random.chance(0.02) ? rows + 1 : rows],
      random.chance(0.3) ? 'int32' : 'int64',
    );
    return {
      operands: [logits, targets],
      ours: ([x, y]) => t.crossEntropy(tensorOf(x), tensorOf(y), { ignoreIndex }),
      torch: ([x, y]) => `cross_entropy(wide(${x}), ${y}.long(), ignore_index=${ignoreIndex})`,
      terms: rows * classes,
    };
  },
};

/** Integers as a tensor without views; as many as the shape asks for. */
export function indexInput(ids: readonly number[], shape: readonly number[], dtype: 'int32' | 'int64') {
  const size = shape.reduce((product, length) => product * length, 1);
  const values = Array.from({ length: size }, (_, i) => ids[i % ids.length] ?? 0);
  const data = dtype === 'int32' ? Int32Array.from(values) : BigInt64Array.from(values, BigInt);
  return { dtype, baseShape: shape, shape, data, views: [], requiresGrad: false };
}

const rope: OpEntry = {
  name: 'rope',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const [length, pairs] = [drawLength(random), random.integer(1, 3)];
    const x = drawTensor(random, {
      dtype: drawMostlyFloat(random),
      shape: [...drawShape(random, 0, 2), length, 2 * pairs + (random.chance(0.02) ? 1 : 0)],
      values: 'ordinary',
    });
    const table = () =>
      drawTensor(random, {
        dtype: 'float32',
        shape: [length, pairs],
        values: 'ordinary',
        requiresGrad: false,
      });
    return {
      operands: [x, table(), table()],
      ours: ([x, cosine, sine]) => t.rope(tensorOf(x), tensorOf(cosine), tensorOf(sine)),
      torch: ([x, cosine, sine]) => `rope(${x}, ${cosine}, ${sine})`,
      terms: 2,
    };
  },
};

const swiglu: OpEntry = {
  name: 'swiglu',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const dtype = drawMostlyFloat(random);
    const values = withoutOverflow(dtype);
    const a = drawTensor(random, { dtype, values });
    const other = random.chance(0.9) ? dtype : drawMostlyFloat(random);
    const shape = random.chance(0.03) ? drawShape(random) : a.shape;
    return {
      operands: [a, drawTensor(random, { dtype: other, shape, values })],
      ours: ([a, b]) => t.swiglu(tensorOf(a), tensorOf(b)),
      torch: ([a, b]) => `swiglu(${a}, ${b}, silu)`,
    };
  },
};

export const nnOps: readonly OpEntry[] = [
  softmax('softmax', t.softmax, 'torch.softmax'),
  softmaxTo,
  causalSoftmax,
  softmax('logSoftmax', t.logSoftmax, 'log_softmax'),
  layerNorm,
  rmsNorm,
  crossEntropy,
  linearCrossEntropy,
  rope,
  swiglu,
];
