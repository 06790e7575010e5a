import type { LogitsMode, RecomputePolicy } from '@roofline/transformer';
import { z } from 'zod';

/** How the loss has its logits: of all tokens, or of a chunk at a time. */
export const logitsModes = ['whole', 'chunked'] as const satisfies readonly LogitsMode[];

/** Policies of TransformerLM that have a name. */
const namedPolicies = [
  'none',
  'block',
  'attention-kept',
  'recursive',
] as const satisfies readonly RecomputePolicy[];

/** What the backward pass makes again, as cells hold it: a policy of TransformerLM, or how many blocks at a time. */
export const recomputeText = z.string().refine((text) => policyOf(text) !== null, {
  error: `one of ${namedPolicies.join(', ')}, or a number of blocks`,
});

/** The policy that a text says; null for none. */
export function policyOf(text: string): RecomputePolicy | null {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  return namedPolicies.find((policy) => policy === text) ?? null;
}

/** `recompute block`, `recompute 4 blocks at a time`. */
export function recomputeInWords(text: string): string {
  return typeof policyOf(text) === 'number' ? `recompute ${text} blocks at a time` : `recompute ${text}`;
}

/** The budget of a cell without one. */
export const noBudget = 'none';

/** The memory that a compiled step may take, as cells hold it. */
export const budgetText = z.string().regex(/^(none|[1-9]\d*(\.\d+)?(MiB|GiB))$/, {
  error: 'none, or bytes as 500MiB and 100GiB',
});
