import { describe, expect, it } from 'vitest';
import { buildMatmul } from '../../../src/ops/matrix/matmul-graph.ts';
import { OnnxGraphBuilder } from '../../../src/onnx/onnx-graph.ts';
import type { OnnxValue } from '../../../src/onnx/graph.ts';
import type { DType } from '../../../src/base/dtype.ts';
import type { Shape } from '../../../src/base/shape.ts';

interface Operand {
  /** As stored in memory. */
  readonly shape: Shape;
  readonly transposed?: boolean;
}

/** The operators that a product becomes, in order, and its final value. */
function graphOf(a: Operand, b: Operand, shape: Shape, { dtype = 'float32', scale = 1 } = {}) {
  const graph = new OnnxGraphBuilder();
  const operand = ({ shape: own, transposed = false }: Operand): OnnxValue => ({
    ...graph.input(dtype as DType, own),
    ...(transposed && { transposed }),
  });
  const [left, right] = [operand(a), operand(b)];
  const result = buildMatmul(graph, left, right, scale, { shape, dtype: dtype as DType });
  const nodes = graph.operations.map(({ opType, domain, attributes }) =>
    [domain, opType, ...Object.entries(attributes).map(([name, value]) => `${name}=${String(value)}`)]
      .filter((word) => word !== '')
      .join(' '),
  );
  const scalars = graph.constants.filter((constant) => constant.shape.length === 0);
  return { nodes, shape: result.shape, scalars: scalars.map(({ data }) => Number(data[0])), result, graph };
}

const matrix = { shape: [3, 4] };
const other = { shape: [4, 5] };
const float64 = { dtype: 'float64' };

describe('buildMatmul', () => {
  it('uses Gemm for two matrices, which transposes and scales them', () => {
    const of = (a: Operand, b: Operand, scale: number) => graphOf(a, b, [3, 5], { scale });
    expect(of(matrix, other, 1)).toMatchObject({ nodes: ['Gemm transA=0 transB=0 alpha=1'], shape: [3, 5] });
    expect(of({ shape: [4, 3], transposed: true }, other, 0.5).nodes).toEqual([
      'Gemm transA=1 transB=0 alpha=0.5',
    ]);
    expect(of(matrix, { shape: [5, 4], transposed: true }, 1).nodes).toEqual([
      'Gemm transA=0 transB=1 alpha=1',
    ]);
  });

  it('transposes the first of two matrices before Gemm where the product has many columns', () => {
    const turned = (rows: number, columns: number, options = {}) =>
      graphOf({ shape: [4, rows], transposed: true }, { shape: [4, columns] }, [rows, columns], options)
        .nodes;
    expect(turned(16, 512, { scale: 0.5 })).toEqual([
      'Transpose perm=1,0',
      'Gemm transA=0 transB=0 alpha=0.5',
    ]);
    expect(turned(16, 511)).toEqual(['Gemm transA=1 transB=0 alpha=1']);
    expect(turned(15, 512)).toEqual(['Gemm transA=1 transB=0 alpha=1']);
    expect(turned(16, 512, float64)).toEqual(['Gemm transA=1 transB=0']);
    const both = graphOf(
      { shape: [4, 16], transposed: true },
      { shape: [512, 4], transposed: true },
      [16, 512],
    );
    expect(both.nodes).toEqual(['Transpose perm=1,0', 'Gemm transA=0 transB=1 alpha=1']);
    expect(graphOf({ shape: [16, 4] }, { shape: [4, 512] }, [16, 512]).nodes).toEqual([
      'Gemm transA=0 transB=0 alpha=1',
    ]);
  });

  it('scales a product of float64 after Gemm, whose factor is float32', () => {
    expect(graphOf(matrix, other, [3, 5], { ...float64, scale: 0.1 })).toMatchObject({
      nodes: ['Gemm transA=0 transB=0', 'Mul'],
      scalars: [0.1],
      shape: [3, 5],
    });
    expect(graphOf(matrix, other, [3, 5], float64).nodes).toEqual(['Gemm transA=0 transB=0']);
  });

  it('gives zeros where sums have no terms', () => {
    const empty = graphOf({ shape: [2, 3, 0] }, { shape: [2, 0, 5] }, [2, 3, 5]);
    expect(empty).toMatchObject({ nodes: ['Expand'], scalars: [0], shape: [2, 3, 5] });
    expect(empty.result.dtype).toBe('float32');
  });

  const batch = { shape: [2, 3, 4] };
  const factor = { shape: [2, 4, 5] };
  const batchTurned = { shape: [2, 4, 3], transposed: true };
  const factorTurned = { shape: [2, 5, 4], transposed: true };

  it('uses MatMul for a batch in its own layout', () => {
    expect(graphOf(batch, factor, [2, 3, 5])).toMatchObject({ nodes: ['MatMul'], shape: [2, 3, 5] });
    expect(graphOf(batch, factor, [2, 3, 5], float64)).toMatchObject({ nodes: ['MatMul'], shape: [2, 3, 5] });
    expect(graphOf(batch, other, [2, 3, 5], float64).nodes).toEqual(['MatMul']);
    expect(graphOf(batch, factor, [2, 3, 5], { ...float64, scale: 3 })).toMatchObject({
      nodes: ['MatMul', 'Mul'],
      scalars: [3],
      shape: [2, 3, 5],
    });
  });

  it.each<[string, Operand, Operand, number]>([
    ['transA=1 transB=0 alpha=1', batchTurned, factor, 1],
    ['transA=0 transB=1 alpha=1', batch, factorTurned, 1],
    ['transA=1 transB=1 alpha=1', batchTurned, factorTurned, 1],
    ['transA=0 transB=0 alpha=2', batch, factor, 2],
    ['transA=0 transB=1 alpha=1', batch, { shape: [5, 4], transposed: true }, 1],
  ])("takes ONNX Runtime's own operator for a batch of float32 with %s", (attributes, a, b, scale) => {
    expect(graphOf(a, b, [2, 3, 5], { scale })).toMatchObject({
      nodes: [`com.microsoft FusedMatMul ${attributes}`],
      shape: [2, 3, 5],
    });
  });

  it('joins the rows of a batch of float64 before one transposed matrix', () => {
    const joined = graphOf(batch, { shape: [5, 4], transposed: true }, [2, 3, 5], { ...float64, scale: 7 });
    expect(joined).toMatchObject({
      nodes: ['Reshape allowzero=1', 'Gemm transA=0 transB=1', 'Mul', 'Reshape allowzero=1'],
      scalars: [7],
      shape: [2, 3, 5],
    });
    const lists = joined.graph.constants.filter(({ dtype }) => dtype === 'int64');
    expect(lists.map(({ data }) => [...data].map(Number))).toEqual([
      [6, 4],
      [2, 3, 5],
    ]);
  });

  it('transposes the operands of a batch of float64 by nodes of their own', () => {
    expect(graphOf(batch, factorTurned, [2, 3, 5], float64)).toMatchObject({
      nodes: ['Transpose perm=0,2,1', 'MatMul'],
      shape: [2, 3, 5],
    });
    expect(graphOf(batchTurned, factor, [2, 3, 5], float64).nodes).toEqual([
      'Transpose perm=0,2,1',
      'MatMul',
    ]);
    expect(graphOf(batchTurned, { shape: [5, 4], transposed: true }, [2, 3, 5], float64).nodes).toEqual([
      'Transpose perm=0,2,1',
      'Transpose perm=1,0',
      'MatMul',
    ]);
    expect(
      graphOf({ shape: [1, 2, 4, 3], transposed: true }, { shape: [1, 2, 4, 5] }, [1, 2, 3, 5], float64)
        .nodes,
    ).toEqual(['Transpose perm=0,1,3,2', 'MatMul']);
  });
});
