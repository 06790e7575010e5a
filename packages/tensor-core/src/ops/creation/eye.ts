import { type TensorOptions, checkTensorOptions, filled } from './from-values.ts';
import { noGrad } from '../../tensor/tape/grad-mode.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { fillInPlace } from '../copy/in-place.ts';
import { slice, view } from '../shape/views.ts';

/** A matrix [rows, columns], square by default, of ones on the diagonal and zeros elsewhere. Throws a ShapeError. */
export function eye(rows: number, columns = rows, options: TensorOptions = {}): Tensor {
  const { requiresGrad, ...rest } = checkTensorOptions('eye', options);
  return scope(() => {
    const matrix = filled('eye', [rows, columns], 0, rest);
    noGrad(() => fillInPlace(diagonalOf(matrix), 1));
    return requiresGrad ? matrix.requiresGrad_() : matrix;
  });
}

/** The elements [i, i], which are columns + 1 apart. */
function diagonalOf(matrix: Tensor): Tensor {
  const [rows, columns] = matrix.shape as [number, number];
  const end = Math.min(rows, columns) * (columns + 1);
  return slice(view(matrix, [-1]), 0, 0, Math.min(end, matrix.size), columns + 1);
}
