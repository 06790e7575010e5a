import { RooflineError, checkNumber, checkOptions, describeValue } from '@roofline/tensor-core';

/**
 * How rotary positions of a short context are stretched to a longer one. All are those of `transformers`:
 *
 * - `linear`: each position counts for 1 / factor of one (Chen et al. 2023).
 * - `llama3`: waves longer than originalContextLength / lowFrequencyFactor are stretched by the factor, those shorter than
 *   originalContextLength / highFrequencyFactor are left, and those between are partly stretched.
 * - `yarn`: waves that turn less than `slowTurns` times in the original context are stretched, those that turn more than `fastTurns`
 *   times are left, with a ramp between; queries and keys are multiplied by `attentionFactor` (Peng et al. 2023).
 */
export type RopeScaling =
  | { readonly type: 'linear'; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly factor: number;
      readonly originalContextLength: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
    }
  | {
      readonly type: 'yarn';
      readonly factor: number;
      readonly originalContextLength: number;
      /** Default 32. */
      readonly fastTurns?: number;
      /** Default 1. */
      readonly slowTurns?: number;
      /** Default 0.1 ln(factor) + 1. */
      readonly attentionFactor?: number;
      /** Whether the ends of the ramp are whole pairs. Default true. */
      readonly wholePairs?: boolean;
    };

const namesByType = {
  linear: ['factor'],
  llama3: ['factor', 'originalContextLength', 'lowFrequencyFactor', 'highFrequencyFactor'],
  yarn: ['factor', 'originalContextLength', 'fastTurns', 'slowTurns', 'attentionFactor'],
} as const;
const optional: readonly string[] = ['fastTurns', 'slowTurns', 'attentionFactor'];

/** Throws a RooflineError (code OPTION or RANGE), which names `owner`, for what is no scaling. */
export function checkRopeScaling(owner: string, scaling: RopeScaling): void {
  const type = (scaling as RopeScaling | null)?.type as RopeScaling['type'];
  if (!Object.hasOwn(namesByType, type ?? '')) {
    throw new RooflineError(
      'OPTION',
      `${owner}: the type of ropeScaling must be linear, llama3 or yarn, not ${describeValue(type)}.`,
    );
  }
  const names: readonly string[] = namesByType[type];
  checkOptions(`${owner}: ropeScaling`, scaling, [
    'type',
    ...names,
    ...(type === 'yarn' ? ['wholePairs'] : []),
  ]);
  const values = scaling as unknown as Record<string, number | undefined>;
  for (const name of names) {
    const value = values[name];
    if (value === undefined && optional.includes(name)) continue;
    checkNumber(owner, `ropeScaling.${name}`, value!, 'positive and finite', (x) => x > 0 && x < Infinity);
  }
  if (scaling.type === 'llama3' && scaling.lowFrequencyFactor >= scaling.highFrequencyFactor) {
    throw new RooflineError(
      'RANGE',
      `${owner}: ropeScaling.lowFrequencyFactor ${scaling.lowFrequencyFactor} must be below highFrequencyFactor ` +
        `${scaling.highFrequencyFactor}.`,
    );
  }
  if (scaling.type === 'yarn' && ![undefined, true, false].includes(scaling.wholePairs)) {
    throw new RooflineError(
      'OPTION',
      `${owner}: ropeScaling.wholePairs must be true or false, got ${describeValue(scaling.wholePairs)}.`,
    );
  }
}

/** Angles by which pairs of features turn from one position to the next, and what cosines and sines are multiplied by. */
export interface RopeFrequencies {
  readonly frequencies: readonly number[];
  readonly amplitude: number;
}

export function ropeFrequencies(
  headDimension: number,
  theta: number,
  scaling: RopeScaling | undefined,
): RopeFrequencies {
  const plain = Array.from(
    { length: headDimension / 2 },
    (_, pair) => theta ** ((-2 * pair) / headDimension),
  );
  if (scaling === undefined) return { frequencies: plain, amplitude: 1 };
  const stretched = shareStretched(scaling, plain, headDimension, theta);
  return {
    frequencies: plain.map((f, pair) => f * (1 - stretched[pair]!) + (f / scaling.factor) * stretched[pair]!),
    amplitude: scaling.type === 'yarn' ? amplitudeOf(scaling) : 1,
  };
}

type Yarn = Extract<RopeScaling, { type: 'yarn' }>;

function amplitudeOf({ factor, attentionFactor }: Yarn): number {
  return attentionFactor ?? (factor <= 1 ? 1 : 0.1 * Math.log(factor) + 1);
}

const clampToOne = (x: number) => Math.min(Math.max(x, 0), 1);

/** Of each pair, how much of it is stretched: from 0, not at all, to 1. */
function shareStretched(
  scaling: RopeScaling,
  plain: readonly number[],
  headDimension: number,
  theta: number,
): number[] {
  if (scaling.type === 'linear') return plain.map(() => 1);
  const { originalContextLength } = scaling;
  const turns = (frequency: number) => (originalContextLength * frequency) / (2 * Math.PI);
  if (scaling.type === 'llama3') {
    const { lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
    return plain.map((frequency) => clampToOne((high - turns(frequency)) / (high - low)));
  }
  const { fastTurns = 32, slowTurns = 1, wholePairs = true } = scaling;
  // The pair, as a real number, that turns so many times in the original context.
  const pairOf = (count: number) =>
    (headDimension * Math.log(originalContextLength / (count * 2 * Math.PI))) / (2 * Math.log(theta));
  const [first, last] = [pairOf(fastTurns), pairOf(slowTurns)];
  const begin = Math.max(wholePairs ? Math.floor(first) : first, 0);
  const end = Math.min(wholePairs ? Math.ceil(last) : last, headDimension - 1);
  const length = end === begin ? 0.001 : end - begin;
  return plain.map((_, pair) => clampToOne((pair - begin) / length));
}
