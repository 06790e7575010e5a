import { runOnDevice } from '../../op/apply.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { lastUses } from '../graph/liveness.ts';
import type { PerRunAttributes } from './per-run-attributes.ts';
import { type Binding, type Executable, type ExecutableFacts, nothingSpared } from './executable.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { explainCalls } from './explained-call.ts';
import { RunMemory } from './run-memory.ts';

/** Runs a graph call by call, as the eager function would, so that observers see its ops, in their ranges. */
export class Interpreter implements Executable {
  readonly tellsReplays = false;
  readonly #graph: Graph;
  readonly #lastUses: readonly (readonly number[])[];

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#lastUses = lastUses(
      graph,
      graph.calls.map((call) => [call]),
    );
  }

  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage> {
    const memory = new RunMemory(this.#graph, bindings);
    const ranges = new ReopenedRanges();
    try {
      this.#graph.calls.forEach((call, i) => {
        runCall(call, memory, live.of(call), ranges);
        memory.free(this.#lastUses[i]!);
      });
      return memory.take();
    } finally {
      memory.freeAll();
    }
  }

  facts(): ExecutableFacts {
    const { calls } = this.#graph;
    const { length } = calls;
    const launches = calls.map((call) => [call]);
    return {
      launches: length,
      nodes: length,
      nodesBefore: length,
      table: explainCalls(this.#graph, launches),
      fused: new Map(),
      ...nothingSpared,
    };
  }

  dispose(): void {}
}

/** Runs one call on the device, with the attributes of this run and in its ranges; observers see it. */
export function runCall(call: Call, memory: RunMemory, attributes: unknown, ranges: ReopenedRanges): void {
  withOperands(call, memory, (inputs, outputs) =>
    ranges.run(call.range, () =>
      runOnDevice(inputs[0]!.device, call.op, inputs, outputs, attributes as never),
    ),
  );
}

/** Calls `run` with handles to a call's operands, which are disposed of afterwards. */
export function withOperands(
  { inputs, outputs }: Call,
  memory: RunMemory,
  run: (inputs: readonly Tensor[], outputs: readonly Tensor[]) => void,
): void {
  const handles: Tensor[] = [];
  const handle = (operand: Operand) => {
    const tensor = memory.tensor(operand);
    handles.push(tensor);
    return tensor;
  };
  try {
    run(inputs.map(handle), outputs.map(handle));
  } finally {
    for (const tensor of handles) tensor.dispose();
  }
}
