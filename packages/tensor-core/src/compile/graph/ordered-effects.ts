import type { EffectOrder } from '../../op/op.ts';
import type { Call } from './graph.ts';

/** Whether a call does more than make its outputs, so that it is never dropped, repeated or merged, and keeps its order. */
export function hasEffects({ op }: Call): boolean {
  return op.effects !== undefined;
}

/** The texts of the calls that keep an order, by that order: both in the order of the calls, which all passes leave alone. */
export function orderedCalls(calls: readonly Call[]): Map<EffectOrder, string[]> {
  const byOrder = new Map<EffectOrder, string[]>();
  for (const { op, inputs, outputs, attributes } of calls) {
    if (!op.effects) continue;
    const order = op.effects.orderOf(attributes as never);
    const text = op.effects.describe(inputs, outputs, attributes as never);
    const texts = byOrder.get(order) ?? [];
    byOrder.set(order, texts);
    if (text !== null) texts.push(text);
  }
  return byOrder;
}
