import type { CudaProperties } from '@roofline/cuda';
import type { UpdateByProducts } from '../../op/kernel-rewrites.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { sizeOf } from '../../base/shape.ts';
import { bytesOf, costOf } from '../../op/cost.ts';
import type { MatmulAttributes } from '../../ops/matrix/matmul.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { membersOf } from './fused-ops.ts';
import { fillsIntermediate } from './joint-storage.ts';
import { isWeightGradient } from './merge-gradients.ts';
import { leaveAsIs } from './operands.ts';
import {
  type TensorUpdate,
  type Update,
  type UpdateNumbers,
  partialUpdate,
  updatedBy,
} from './partial-update.ts';
import type { Rewrite } from './rewrite.ts';

/** A tensor whose gradient is a product that only its update reads. */
export interface ProductUpdate {
  readonly tensor: TensorUpdate;
  /** The same with the product's operands, dy and x, in place of the gradient. */
  readonly byProduct: TensorUpdate;
  readonly product: Call;
  /** The place of the last call that must precede both. */
  readonly readyAfter: number;
}

const productsOf = new WeakMap<Call['op'], readonly Pick<Call, 'inputs'>[]>();

/**
 * Groups of tensors whose gradients the update's own kernel can multiply, so that they are never in memory. A product of
 * several gradients, as of weights that share an input, is taken apart if all of them can be. `lastConflict` gives the place
 * of the last call before the update with which that of one tensor may not change places.
 */
export function productUpdates(
  rewrite: Rewrite,
  update: Update,
  properties: CudaProperties,
  lastConflict: (tensor: TensorUpdate) => number,
): ProductUpdate[][] {
  const { byProducts } = update.byTensor;
  if (!byProducts) return [];
  const byGradient = Map.groupBy(update.tensors, (tensor) => updatedBy(update, tensor)[0]!.storage);
  const found = [...byGradient].flatMap(([storage, tensors]) => {
    const product = onlyMaker(rewrite, storage);
    if (!product) return [];
    const made = rewrite.placeOf(product);
    const parts = tensors.flatMap((tensor) => {
      const byProduct = withProduct(update, tensor, product);
      if (!mayBeTaken(rewrite, byProducts, properties, byProduct, product)) return [];
      return { tensor, byProduct, product, readyAfter: Math.max(made, lastConflict(byProduct)) };
    });
    return parts.length === tensors.length ? parts : [];
  });
  found.sort((a, b) => a.readyAfter - b.readyAfter);
  return grouped(found, byProducts.mostTensors, byProducts.enoughFlops(properties));
}

/** The call that updates a group. */
export function updateByProducts(
  update: Update,
  group: readonly ProductUpdate[],
  numbers: UpdateNumbers,
): Call {
  const { call, byTensor } = update;
  const products = group.map(({ product }) => product);
  const tensors = group.map(({ byProduct }) => byProduct);
  const merged = partialUpdate(update, tensors, numbers, {
    name: `${call.op.name}ByProducts`,
    launch: byTensor.byProducts!.launch,
    strided: true,
    cost: (inputs, outputs) => {
      const [dys, xs] = [0, 1]
        .map((i) => byTensor.written + i)
        .map((role) => inputs.slice(role * group.length, (role + 1) * group.length));
      const written = outputs.slice(0, byTensor.written * group.length);
      const flopsOfProducts = dys!.reduce((sum, dy, i) => sum + flopsOf([dy, xs![i]!]), 0);
      const { flops } = costOf(call.op, inputs, written, undefined as never);
      const bytesMoved = 2 * bytesOf(written) + bytesOf(dys!) + bytesOf(xs!);
      return { flops: flops + flopsOfProducts, bytesMoved, boundBy: 'memory' };
    },
  });
  productsOf.set(
    merged.op,
    tensors.map(({ inputs }) => ({ inputs: inputs.slice(-2) })),
  );
  return { ...merged, members: membersOf([...new Set(products), call]) };
}

/** The operands of each gradient that a call of `updateByProducts` multiplies; none for other calls. */
export function productsInUpdate({ op }: Pick<Call, 'op'>): readonly Pick<Call, 'inputs'>[] {
  return productsOf.get(op) ?? [];
}

/** Of the product of the last two inputs. */
function flopsOf(inputs: readonly TensorSpec[]): number {
  const [dy, x] = inputs.slice(-2) as [TensorSpec, TensorSpec];
  return 2 * sizeOf(dy.shape) * x.shape[1]!;
}

/** The product that alone makes an intermediate storage of gradients, which only the update uses after it. */
function onlyMaker({ graph, uses }: Rewrite, storage: number): Call | null {
  const [product, ...others] = uses.get(storage)!;
  if (others.length > 1 || !isWeightGradient(product!)) return null;
  const { scale } = product!.attributes as MatmulAttributes;
  return fillsIntermediate(graph, product!.outputs[0]!) && scale === 1 ? product! : null;
}

/**
 * A tensor with those rows of the product that are its gradient. Where its gradient is anything else, they have another shape
 * or begin between vectors, and no kernel takes them.
 */
function withProduct(update: Update, tensor: TensorUpdate, product: Call): TensorUpdate {
  const [gradient] = updatedBy(update, tensor) as [Operand];
  const [dy, x] = product.inputs as [Operand, Operand];
  const m = gradient.shape[0]!;
  const rows: Operand = {
    ...dy,
    shape: [m, dy.shape[1]!],
    offset: dy.offset + (gradient.offset / x.shape[1]!) * dy.strides[0]!,
    size: (dy.size / dy.shape[0]!) * m,
    byteLength: (dy.byteLength / dy.shape[0]!) * m,
  };
  return { ...tensor, inputs: [...tensor.inputs.slice(0, update.byTensor.written), rows, x] };
}

/**
 * Whether a kernel takes the tensor, and the product's operands stay as they are: the product may then run any time later. What
 * other updates write, which may move as well, is none of them.
 */
function mayBeTaken(
  rewrite: Rewrite,
  byProducts: UpdateByProducts,
  properties: CudaProperties,
  { inputs, outputs, copy }: TensorUpdate,
  product: Call,
): boolean {
  const [dy, x] = inputs.slice(-2) as [Operand, Operand];
  const later = [dy, x].flatMap(({ storage }) => {
    const users = rewrite.uses.get(storage)!;
    return users.slice(users.indexOf(product) + 1);
  });
  // An argument's memory begins where its first element does.
  const isAligned = ({ storage }: Operand) => rewrite.graph.storages[storage]!.source.kind !== 'argument';
  return (
    [...inputs, ...outputs, ...(copy ? [copy] : [])].every(isAligned) &&
    leaveAsIs(later, [dy, x]) &&
    byProducts.takes(properties, outputs, copy, { dy, x })
  );
}

/** Groups of tensors that are updated together, with operands of one dtype, each worth a call of its own but for the last. */
function grouped(
  found: readonly ProductUpdate[],
  mostTensors: number,
  enoughFlops: number,
): ProductUpdate[][] {
  const groups: ProductUpdate[][] = [];
  const dtypeOf = ({ byProduct }: ProductUpdate) => byProduct.inputs.at(-1)!.dtype;
  let flops = Infinity;
  for (const each of found) {
    const [first] = groups.at(-1) ?? [];
    const isFull = flops >= enoughFlops || groups.at(-1)!.length === mostTensors;
    if (isFull || dtypeOf(first!) !== dtypeOf(each)) {
      groups.push([]);
      flops = 0;
    }
    groups.at(-1)!.push(each);
    flops += flopsOf(each.byProduct.inputs);
  }
  return groups;
}
