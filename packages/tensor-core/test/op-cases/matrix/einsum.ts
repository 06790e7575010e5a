import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape, Tensor } from '../../../src/index.ts';
import { relativeError, sample } from '../support/samples.ts';
import { type OpenDevice, expectFiniteDifferences } from '../support/vector-jacobian.ts';

/** Sums over every combination of the indices, by the definition. Dimensions of length one are broadcast. */
function referenceEinsum(
  indices: readonly string[],
  output: string,
  operands: readonly Tensor[],
): { shape: number[]; values: number[] } {
  const lengths = new Map<string, number>();
  operands.forEach(({ shape }, o) =>
    [...indices[o]!].forEach((index, d) => lengths.set(index, Math.max(lengths.get(index) ?? 0, shape[d]!))),
  );
  const all = [...output, ...[...lengths.keys()].filter((index) => !output.includes(index))];
  const flat = operands.map((operand) => operand.toFlatArray());
  const shape = [...output].map((index) => lengths.get(index)!);
  const values = new Array<number>(t.sizeOf(shape)).fill(0);
  const total = t.sizeOf(all.map((index) => lengths.get(index)!));
  for (let n = 0; n < total; n++) {
    const at = new Map<string, number>();
    let rest = n;
    for (const index of all.toReversed()) {
      at.set(index, rest % lengths.get(index)!);
      rest = Math.floor(rest / lengths.get(index)!);
    }
    const place = (list: string, dims: Shape) =>
      [...list].reduce((sum, index, d) => sum * dims[d]! + (dims[d] === 1 ? 0 : at.get(index)!), 0);
    values[place(output, shape)]! += operands.reduce(
      (product, { shape: dims }, o) => product * flat[o]![place(indices[o]!, dims)]!,
      1,
    );
  }
  return { shape, values };
}

interface EinsumCase {
  readonly equation: string;
  readonly shapes: readonly Shape[];
  /** The same with a letter for every index, also of the result: what an ellipsis or a missing result means. */
  readonly means?: string;
}

const cases: readonly EinsumCase[] = [
  {
    equation: 'ij,jk->ik',
    shapes: [
      [2, 3],
      [3, 4],
    ],
  },
  {
    equation: 'ij,jk',
    shapes: [
      [2, 3],
      [3, 4],
    ],
    means: 'ij,jk->ik',
  },
  {
    equation: 'kj,ik',
    shapes: [
      [2, 3],
      [4, 2],
    ],
    means: 'kj,ik->ij',
  },
  {
    equation: 'bA,Ac',
    shapes: [
      [2, 3],
      [3, 4],
    ],
    means: 'bA,Ac->bc',
  },
  {
    equation: 'aB,bB',
    shapes: [
      [2, 3],
      [4, 3],
    ],
    means: 'aB,bB->ab',
  },
  {
    equation: 'Ba,ac',
    shapes: [
      [2, 3],
      [3, 4],
    ],
    means: 'Ba,ac->Bc',
  },
  {
    equation: 'bX,aX->ab',
    shapes: [
      [2, 3],
      [4, 3],
    ],
  },
  {
    equation: ' i j , j k -> k i ',
    shapes: [
      [2, 3],
      [3, 4],
    ],
    means: 'ij,jk->ki',
  },
  {
    equation: 'bhqd,bhkd->bhqk',
    shapes: [
      [2, 3, 4, 5],
      [2, 3, 6, 5],
    ],
  },
  {
    equation: 'bqhd,bkhd->bhqk',
    shapes: [
      [2, 4, 3, 5],
      [2, 6, 3, 5],
    ],
  },
  {
    equation: 'bij,bjk->kbi',
    shapes: [
      [2, 3, 4],
      [2, 4, 5],
    ],
  },
  {
    equation: 'abcd,cefb->afde',
    shapes: [
      [2, 3, 4, 5],
      [4, 2, 3, 3],
    ],
  },
  {
    equation: 'ijk,jkl->il',
    shapes: [
      [2, 3, 4],
      [3, 4, 5],
    ],
  },
  {
    equation: 'ijk,lkj->il',
    shapes: [
      [2, 3, 4],
      [5, 4, 3],
    ],
  },
  { equation: 'i,j->ij', shapes: [[3], [4]] },
  { equation: 'i,i->', shapes: [[3], [3]] },
  { equation: 'i,i', shapes: [[3], [3]], means: 'i,i->' },
  { equation: 'i,i->i', shapes: [[3], [3]] },
  { equation: 'ij,j->ij', shapes: [[2, 3], [3]] },
  { equation: 'ij,j->ji', shapes: [[2, 3], [3]] },
  {
    equation: 'ij,ij->',
    shapes: [
      [2, 3],
      [2, 3],
    ],
  },
  {
    equation: 'ijx,jky->ik',
    shapes: [
      [2, 3, 2],
      [3, 4, 5],
    ],
  },
  {
    equation: 'ix,jy->ij',
    shapes: [
      [2, 3],
      [4, 5],
    ],
  },
  { equation: 'ij->ji', shapes: [[2, 3]] },
  { equation: 'ij->j', shapes: [[2, 3]] },
  { equation: 'ij->', shapes: [[2, 3]] },
  { equation: 'ba', shapes: [[2, 3]], means: 'ba->ab' },
  { equation: ',ij->ij', shapes: [[], [2, 3]] },
  {
    equation: '...ij,...jk->...ik',
    shapes: [
      [5, 2, 3],
      [5, 3, 4],
    ],
    means: 'xij,xjk->xik',
  },
  {
    equation: '...ij,jk',
    shapes: [
      [6, 5, 2, 3],
      [3, 4],
    ],
    means: 'yxij,jk->yxik',
  },
  {
    equation: '...i,i...->...',
    shapes: [
      [2, 3],
      [3, 4, 2],
    ],
    means: 'xi,iyx->yx',
  },
  { equation: 'i...->...', shapes: [[2, 3, 4]], means: 'ixy->xy' },
  { equation: '...i->i', shapes: [[2, 3]], means: 'xi->i' },
  { equation: 'b...c->c...b', shapes: [[2, 3, 4]], means: 'bxc->cxb' },
  {
    equation: 'ij,jk->ik',
    shapes: [
      [2, 1],
      [3, 4],
    ],
  },
  {
    equation: 'bij,bjk->bik',
    shapes: [
      [1, 2, 3],
      [4, 3, 2],
    ],
  },
  {
    equation: 'ij,jk,kl->il',
    shapes: [
      [2, 3],
      [3, 4],
      [4, 2],
    ],
  },
  { equation: 'i,j,i', shapes: [[2], [3], [2]], means: 'i,j,i->j' },
  {
    equation: 'ij,jk->ik',
    shapes: [
      [2, 0],
      [0, 3],
    ],
  },
  {
    equation: 'ij,jk->ik',
    shapes: [
      [0, 2],
      [2, 3],
    ],
  },
];

/** einsum on one device. */
export function describeEinsum(open: OpenDevice): void {
  it.each(cases)('$equation of $shapes', ({ equation, shapes, means = equation }) => {
    t.scope(() => {
      const operands = shapes.map((shape, i) => sample(shape, { seed: 101 + i }, open()));
      const [inputs, output] = means.split('->');
      const expected = referenceEinsum(inputs!.split(','), output!, operands);
      const y = t.einsum(equation, ...operands);
      expect(y.shape).toEqual(expected.shape);
      expect(relativeError(y.toFlatArray(), expected.values)).toBeLessThanOrEqual(2 ** -21);
    });
  });

  it('reads views in place, and gives a handle of its own', () => {
    t.scope(() => {
      const x = sample([4, 5, 2], { seed: 105 }, open());
      const a = t.select(t.transpose(x, 0, 1), 2, 1);
      expect(
        relativeError(
          t.einsum('ij,kj->ik', a, a).toFlatArray(),
          referenceEinsum(['ij', 'kj'], 'ik', [a, a]).values,
        ),
      ).toBeLessThanOrEqual(2 ** -21);
      const same = t.einsum('ijk->ijk', x);
      same.dispose();
      expect(x.isDisposed).toBe(false);
    });
  });

  it('multiplies in low precision under autocast', () => {
    t.scope(() => {
      const x = sample([2, 3], { seed: 106 }, open());
      expect(t.autocast('bfloat16', () => t.einsum('ij,kj->ik', x, x)).dtype).toBe('bfloat16');
    });
  });

  describe('names what it does not take:', () => {
    it.each<[string, Shape[], string]>([
      ['ii->i', [[2, 2]], 'the index i stands twice in "ii"; diagonals are not supported'],
      ['i->ii', [[2]], 'the index i stands twice in the result'],
      ['ij->k', [[2, 2]], "the result's index k is in no operand"],
      ['ij->i->j', [[2, 2]], 'there is more than one "->"'],
      ['ij,jk->ik', [[2, 2]], 'it has 2 operands, but 1 tensors are given'],
      ['i1->i', [[2, 2]], '"i1" may hold letters'],
      ['i..->i', [[2, 2]], '"i.." may hold letters'],
      ['......i->i', [[2, 2]], 'one ellipsis'],
      ['ij->i-', [[2, 2]], '"i-" may hold letters'],
      ['ijk->i', [[2, 2]], '"ijk" names 3 dimensions, but its operand is [2, 2]'],
      ['i->i', [[2, 2]], '"i" names 1 dimensions'],
      ['...ijk->i', [[2, 2]], '"...ijk" names 3 dimensions'],
      [
        'ij,jk->ik',
        [
          [2, 3],
          [4, 2],
        ],
        'the index j has length 3 and, in an operand [4, 2], 4',
      ],
    ])('%s of %j', (equation, shapes, message) => {
      t.scope(() => {
        const operands = shapes.map((shape) => t.zeros(shape, { device: open() }));
        expect(() => t.einsum(equation, ...operands)).toThrow(message);
      });
    });
  });
}

/** Finite differences of einsum, in float64. */
export function describeEinsumGradients(open: OpenDevice): void {
  const differentiated = cases.filter(({ shapes }) => shapes.every((shape) => !shape.includes(0)));
  it.each(differentiated)(
    '$equation has the gradients that finite differences show',
    ({ equation, shapes }) => {
      t.scope(() => {
        const small = shapes.map((shape, i) => sample(shape, { dtype: 'float64', seed: 111 + i }, open()));
        expectFiniteDifferences((...operands) => t.einsum(equation, ...operands), small);
      });
    },
  );
}
