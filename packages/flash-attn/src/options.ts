import { DTypeError, RooflineError, Tensor, checkOptions } from '@roofline/tensor-core';

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

/** The options of a call as they stand, with their defaults. */
export interface AttentionSettings {
  readonly causal: boolean;
  readonly scale: number;
}

/**
 * Throws a DTypeError for operands that are no tensors, and a RooflineError (code OPTION) for options that are not
 * `known` or hold what they cannot.
 */
export function attentionSettings(
  op: string,
  operands: readonly Tensor[],
  options: AttentionOptions,
  known: readonly string[] = attentionOptions,
): AttentionSettings {
  for (const operand of operands) {
    if (!(operand instanceof Tensor)) {
      throw new DTypeError(`${op}: takes tensors q, k and v, not ${String(operand)}; make them with tensor().`);
    }
    operand.assertAlive(op);
  }
  checkOptions(op, options, known);
  const { causal = false, scale = 1 / Math.sqrt(operands[0]!.shape.at(-1) ?? 1) } = options;
  checkFlag(op, 'causal', causal);
  if (typeof scale !== 'number' || !Number.isFinite(scale)) {
    throw new RooflineError('OPTION', `${op}: scale must be a finite number, not ${String(scale)}.`);
  }
  return { causal, scale };
}

/** Throws a RooflineError (code OPTION) unless the option is true or false. */
export function checkFlag(op: string, name: string, value: boolean): void {
  if (typeof value !== 'boolean') {
    throw new RooflineError('OPTION', `${op}: ${name} must be true or false, not ${String(value)}.`);
  }
}
