import type { ModelAttention } from '../../attention/kinds.ts';
import type { Execution } from '../../execution/kinds.ts';
import type { E2eDType, Mode, NamedModel } from '../../benchmarks/e2e/parameters.ts';

interface StepArguments {
  readonly context: readonly number[];
  readonly batch: readonly number[];
  readonly mode: readonly Mode[];
  readonly dtype: readonly E2eDType[];
  readonly attention: readonly ModelAttention[];
  readonly execution: readonly Execution[];
  readonly steps: number;
  readonly seed: number;
}

/** The parameters that every sweep of training steps has, from its flags. */
export function stepSweep(
  { context, batch, mode, dtype, attention, execution, steps, seed }: StepArguments,
  models: NamedModel[],
) {
  return {
    models,
    contexts: [...context],
    batches: [...batch],
    modes: [...mode],
    dtypes: [...dtype],
    attentions: [...attention],
    executions: [...execution],
    steps,
    seed,
  };
}
