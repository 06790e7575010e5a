import {
  type EffectOrder,
  type Op,
  type Tensor,
  applyOne,
  byteSize,
  defineOp,
  device,
} from '../../src/index.ts';

/** Whose calls keep an order, which notes what it is asked. */
export class NotedOrder implements EffectOrder {
  readonly name: string;
  multiprocessors = 0;
  /** In the order in which they ran, or were captured. */
  readonly calls: string[] = [];
  readonly agreed: string[] = [];
  readonly launched: string[] = [];
  readonly drops = new Set<() => void>();
  /** Thrown by `agree`, and by `launch`; null for none. */
  refusal: Error | null = null;
  loss: Error | null = null;
  /** Why `assertUsable` throws; empty where it does not. */
  end = '';

  constructor(name = 'order') {
    this.name = name;
  }

  agree(program: string, calls: readonly string[]): void {
    this.agreed.push(`${program}: ${calls.join(', ')}`);
    if (this.refusal) throw this.refusal;
  }

  assertUsable(program: string): void {
    if (this.end) throw new Error(`${program}: ${this.end}`);
  }

  launch(program: string, calls: readonly string[], launch: () => void): void {
    if (this.loss) throw this.loss;
    this.launched.push(`${program}: ${calls.join(', ')}`);
    launch();
  }

  beforeEnd(drop: () => void): () => void {
    this.drops.add(drop);
    return () => void this.drops.delete(drop);
  }
}

interface Attributes {
  readonly order: NotedOrder;
  readonly text: string | null;
}

/** Bytes on a link by a call's text: ten seconds' worth, and as many as take as long as 120 bytes of the GPU's memory. */
const linkBytes = new Map<string | null, number>([
  ['slow', 1e12],
  ['short', 3],
]);

/** A copy of its input that tells an order of it; see `linkBytes`. */
export const tellOp: Op<Attributes> = defineOp<Attributes>({
  name: 'tell',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  gradient: ({ gradients }) => gradients,
  cost: (_, __, { text }) => ({ flops: 0, bytesMoved: 0, linkBytes: linkBytes.get(text) ?? 0 }),
  effects: { kind: 'ordered', orderOf: ({ order }) => order, describe: (_, __, { text }) => text },
  cuda: {
    kind: 'custom',
    launch(context, [x], [y], { order, text }) {
      order.calls.push(`${text}${context.isCaptured ? ' captured' : ''}`);
      context.copy(x!, y!);
    },
  },
  cpu: {
    kind: 'memory',
    run([x], [y], { order, text }) {
      order.calls.push(String(text));
      const bytes = new Uint8Array(x!.byteLength);
      device('cpu').read(x!.storage.buffer, x!.offset * byteSize(x!.dtype), bytes);
      device('cpu').write(y!.storage.buffer, y!.offset * byteSize(y!.dtype), bytes);
    },
  },
});

export const tell = (x: Tensor, order: NotedOrder, text: string | null = 'call'): Tensor =>
  applyOne(tellOp, [x], { order, text });
