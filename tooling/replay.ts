import {
  type ComputeOp,
  type Tensor,
  alias,
  keep,
  noGrad,
  observeOps,
} from '../packages/tensor-core/src/index.ts';
import { liveSourceOf } from '../packages/tensor-core/src/op/live-attributes.ts';

interface Call {
  readonly op: ComputeOp<never>;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attributes: unknown;
  readonly next: (() => unknown) | null;
}

/** What a function did, to be done again. */
export interface Recording {
  /** Runs the same ops on the same memory, with what `applyLive` gives for this run. */
  replay(): void;
  /** The names of the ops, in their order. */
  readonly ops: readonly string[];
  /** The elements of what the latest run of the op of this name gave, the first one's first output. */
  resultOf(op: string): number[];
  dispose(): void;
}

/**
 * Runs `fn` and writes its ops down, as a compiled program would: without its JavaScript. Throws for what no replay could
 * repeat, values read or written by the host.
 */
export function recordOps(fn: () => void): Recording {
  const calls: Call[] = [];
  const own = (tensors: readonly Tensor[]) => noGrad(() => tensors.map((x) => keep(alias(x))));
  const refuse = (what: string) => () => {
    throw new Error(`the host ${what} inside of a step, behind ${calls.at(-1)?.op.name}`);
  };
  const stop = observeOps({
    before(op, inputs, outputs, attributes) {
      const next = liveSourceOf(attributes);
      calls.push({ op, inputs: own(inputs), outputs: own(outputs), attributes, next });
    },
    hostRead: refuse('reads'),
    hostWrite: refuse('writes'),
    deviceCopy: refuse('copies between devices'),
  });
  try {
    fn();
  } finally {
    stop();
  }
  return {
    ops: calls.map(({ op }) => op.name),
    replay() {
      const attributes = calls.map((call) => (call.next ? call.next() : call.attributes));
      calls.forEach(({ op, inputs, outputs }, i) =>
        inputs[0]!.device.run(op, inputs, outputs, attributes[i] as never),
      );
    },
    resultOf(name) {
      return calls.find(({ op }) => op.name === name)!.outputs[0]!.toFlatArray() as number[];
    },
    dispose() {
      for (const { inputs, outputs } of calls) for (const x of [...inputs, ...outputs]) x.dispose();
    },
  };
}
