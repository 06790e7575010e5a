import { elementBytes, parameterUnits, type StepSetting } from './setting.ts';

/** What the inequalities of pencil and paper stand on: no latency, no overhead, products at the ceiling. */
export interface ByHandSetting {
  readonly setting: StepSetting;
  /** Of the whole step. */
  readonly tokens: number;
  readonly flopsPerSecond: number;
  /** What each device sends in a second. */
  readonly linkBytesPerSecond: number;
}

/**
 * The largest N for which calculating takes as long as what is sent, by the inequalities of section 8 of the handout: in B tokens, F as
 * the width of the feed-forward network, W bytes/s, C FLOP/s and e bytes a number. Data parallel, a backward pass of P parameters takes 4 B P / N C and its
 * gradients 2 (N - 1) e P / N W, in a ring; sharded, each pass gathers half as much for half the work. Tensor parallel, the three products of
 * a SwiGLU take 6 B D F / N C forward and twice that backward, the sum of its outputs 2 (N - 1) e B D / N W each time. By both axes the
 * largest product of what each allows, side by side or one after the other on the same links.
 */
export function inequalities(asked: ByHandSetting) {
  const { setting, tokens, flopsPerSecond, linkBytesPerSecond } = asked;
  const perFlop = linkBytesPerSecond / (elementBytes(setting.dtype) * flopsPerSecond);
  const feedForward = setting.shape.feedForwardDimension;
  const both = 6 * tokens * feedForward * perFlop ** 2;
  const rows: readonly [string, string, number][] = [
    ['data parallel', 'N ≤ 1 + 2 B W / e C', 1 + 2 * tokens * perFlop],
    ['sharded parameters', 'N ≤ 1 + 2 B W / e C', 1 + 2 * tokens * perFlop],
    ['tensor parallel, forward', 'N ≤ 1 + 3 F W / e C', 1 + 3 * feedForward * perFlop],
    ['tensor parallel, backward', 'N ≤ 1 + 6 F W / e C', 1 + 6 * feedForward * perFlop],
    ['both, on links of their own', 'N ≤ 6 B F (W / e C)²', both],
    ['both, on the same links', 'N ≤ 3/2 B F (W / e C)²', both / 4],
  ];
  return rows.map(([how, inequality, most]) => ({
    how,
    inequality,
    mostGpus: Math.max(1, Math.floor(most)),
  }));
}

/** The gradients of a step all-reduced by N devices: S bytes in a ring of pieces, and in the alternate ring that passes whole ones on. */
export function rings({ setting, linkBytesPerSecond }: ByHandSetting, gpus: number) {
  const bytes = elementBytes(setting.dtype) * parameterUnits(setting).total;
  const sendingMs = (1000 * bytes) / linkBytesPerSecond;
  return {
    bytes,
    ringMs: (2 * (gpus - 1) * sendingMs) / gpus,
    alternateMs: (gpus - 1) * sendingMs,
  };
}
