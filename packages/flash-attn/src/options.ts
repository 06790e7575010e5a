import { RooflineError, checkOptions, describeValue } from '@roofline/tensor-core';
import type { AttentionSizes } from './operands.ts';

export interface AttentionOptions {
  /**
   * Whether query i sees only the keys j <= i + keys - queries: the mask is aligned at the bottom right, and the last
   * query sees every key. Default false.
   */
  causal?: boolean;
  /** What q·k is multiplied by. Default 1/√(head dimension). */
  scale?: number;
}

/** The names of `AttentionOptions`. */
export const attentionOptions = ['causal', 'scale'] as const;

/** The options of a call, with their defaults. */
export interface AttentionSettings {
  readonly causal: boolean;
  readonly scale: number;
}

/**
 * Throws a RooflineError (code OPTION), which names `op`, for options that are not `known` or hold what they cannot.
 */
export function attentionSettings(
  op: string,
  { headDimension }: AttentionSizes,
  options: AttentionOptions,
  known: readonly string[],
): AttentionSettings {
  if ((options as { readonly window?: unknown } | null)?.window !== undefined) {
    throw new RooflineError(
      'OPTION',
      `${op}: there are no sliding windows, and these tokens see fewer keys than there are; take plain attention ` +
        '(plainAttention, or `--attention plain`), or a context no longer than the window.',
    );
  }
  checkOptions(op, options, known);
  const { causal = false, scale = 1 / Math.sqrt(headDimension) } = options;
  checkFlag(op, 'causal', causal);
  if (typeof scale !== 'number' || !Number.isFinite(scale)) {
    throw new RooflineError('OPTION', `${op}: scale must be a finite number, not ${describeValue(scale)}.`);
  }
  return { causal, scale };
}

/** Throws a RooflineError (code OPTION) unless the option is true or false. */
export function checkFlag(op: string, name: string, value: boolean): void {
  if (typeof value !== 'boolean') {
    throw new RooflineError('OPTION', `${op}: ${name} must be true or false, not ${describeValue(value)}.`);
  }
}
