import type { TensorSpec } from '../../base/memory-view.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { buildThinProduct } from './thin-product.ts';
import { sizeOf } from '../../base/shape.ts';

/** ONNX Runtime's own operators. */
const domain = 'com.microsoft';

/**
 * The matrix product a · b, times `scale`, over the last two dimensions; operands are float32 or float64, and may
 * be marked `transposed`.
 * On two Zen 5 cores with ONNX Runtime 1.30, float32, in GFLOP/s (in brackets: torch 1.13, OpenBLAS):
 * - 512 rows, 768..3072 columns: X · Wᵀ and dY · W 460 to 490 (130 to 255), dYᵀ · X 420 (255); 10,000 columns
 *   470 (253), 450 (249) and 365 (244). Gemm, MatMul and FusedMatMul do not differ beyond the noise.
 * - 48 products 128×64 · 64×128 450 (174), their transposes 360 to 460 (173); MatMul is at times faster than
 *   FusedMatMul where nothing is transposed or scaled.
 * - 1 row · Wᵀ, 768..3072 columns 42 to 88 (14), 4 rows 130 (27); W · xᵀ instead 25 and 100, MatMul 3. Gemm transposes a
 *   transposed first operand again for every 128 columns of the product, so if there are many, a Transpose before it costs
 *   less. dYᵀ · X of 512 rows on two busy Emerald Rapids cores, in GFLOP/s, Gemm alone and after a Transpose: 768×768 57 and
 *   74, 3072×768 67 and 79, 768×3072 67 and 76, 10,000×768 66 and 79; with one thread 77 and 88, 79 and 91, 82 and 95, 75 and
 *   90. The sums are the same, bit for bit. A second operand that is transposed loses less than a Transpose costs. Where the
 *   sums have no terms all of them are 0; of a batch MatMul would write the first matrix alone.
 */
export function buildMatmul(
  graph: OnnxGraph,
  a: OnnxValue,
  b: OnnxValue,
  scale: number,
  { shape }: TensorSpec,
): OnnxValue {
  if (sizeOf(a.shape) === 0) {
    return graph.node('Expand', [graph.scalar(a.dtype, 0), graph.integers(shape)], {}, { shape });
  }
  const thin =
    a.dtype === 'float32' && !graph.standardOnly ? buildThinProduct(graph, a, b, scale, shape) : null;
  if (thin) return thin;
  const [transA, transB] = [Number(a.transposed ?? false), Number(b.transposed ?? false)];
  if (a.shape.length === 2 && b.shape.length === 2) {
    // The attribute alpha is a float32, which cannot hold every scale of a float64 product.
    if (a.dtype === 'float64')
      return scaled(graph, graph.node('Gemm', [a, b], { transA, transB }, { shape }), scale);
    const turned = !graph.standardOnly && isBetterTurned(a, shape) ? inOrder(graph, a) : a;
    return graph.node(
      'Gemm',
      [turned, b],
      { transA: Number(turned.transposed ?? false), transB, alpha: scale },
      { shape },
    );
  }
  if (a.dtype === 'float32' && !graph.standardOnly && (transA || transB || scale !== 1)) {
    return graph.node('FusedMatMul', [a, b], { transA, transB, alpha: scale }, { shape, domain });
  }
  if (a.dtype === 'float64' && transB && !transA && b.shape.length === 2) {
    // MatMul would need a node that transposes the second operand; Gemm needs none.
    const [rows, k] = [sizeOf(shape.slice(0, -1)), a.shape.at(-1)!];
    const matrix = buildMatmul(graph, graph.reshape(a, [rows, k]), b, scale, {
      shape: [rows, shape.at(-1)!],
      dtype: a.dtype,
    });
    return graph.reshape(matrix, shape);
  }
  return scaled(graph, graph.node('MatMul', [inOrder(graph, a), inOrder(graph, b)], {}, { shape }), scale);
}

/** From so many columns of a product on, a Transpose of its first operand costs less than Gemm's own transposing. */
const columnsThatPay = 512;
/** With fewer rows there is nothing to gain, and for a single row ONNX Runtime adds in another order. */
const rowsThatPay = 16;

/** Whether to transpose the first operand of a product of this shape by a node of its own. */
function isBetterTurned({ transposed = false }: OnnxValue, [rows, columns]: TensorSpec['shape']): boolean {
  return transposed && rows! >= rowsThatPay && columns! >= columnsThatPay;
}

function scaled(graph: OnnxGraph, product: OnnxValue, scale: number): OnnxValue {
  return scale === 1 ? product : graph.node('Mul', [product, graph.scalar(product.dtype, scale)]);
}

/** The operand with its dimensions as the op sees them. */
export function inOrder(graph: OnnxGraph, value: OnnxValue): OnnxValue {
  if (!value.transposed) return value;
  const rank = value.shape.length;
  const perm = value.shape.map((_, i) => (i < rank - 2 ? i : 2 * rank - 3 - i));
  return graph.node('Transpose', [value], { perm }, { shape: perm.map((i) => value.shape[i]!) });
}
