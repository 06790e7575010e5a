import { runOnDevice } from '../../op/apply.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { lastUses } from '../graph/liveness.ts';
import type { PerRunAttributes } from './per-run-attributes.ts';
import { type Binding, type ProgramRunner, type RunnerFacts, nothingSpared } from './executable.ts';
import type { Call, Operand, Program } from '../graph/graph.ts';
import { explainCalls } from './explained-call.ts';
import { ProgramMemory } from './run-memory.ts';

/** Runs a program call by call, as an eager function would: so that observers see its ops, in their ranges. */
export class Interpreter implements ProgramRunner {
  readonly tellsReplays = false;
  readonly #program: Program;
  readonly #lastUses: readonly (readonly number[])[];

  constructor(program: Program) {
    this.#program = program;
    this.#lastUses = lastUses(
      program,
      program.calls.map((call) => [call]),
    );
  }

  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage> {
    const memory = new ProgramMemory(this.#program, bindings);
    const ranges = new ReopenedRanges();
    try {
      this.#program.calls.forEach((call, i) => {
        runCall(call, memory, live.of(call), ranges);
        memory.free(this.#lastUses[i]!);
      });
      return memory.take();
    } finally {
      memory.freeAll();
    }
  }

  facts(): RunnerFacts {
    const { calls } = this.#program;
    const { length } = calls;
    const launches = calls.map((call) => [call]);
    return {
      launches: length,
      nodes: length,
      nodesBefore: length,
      table: explainCalls(this.#program, launches, null),
      fused: new Map(),
      ...nothingSpared,
    };
  }

  dispose(): void {}
}

/** Runs one call on the device, with the attributes of this run and in its ranges, and tells observers of it. */
export function runCall(
  call: Call,
  memory: ProgramMemory,
  attributes: unknown,
  ranges: ReopenedRanges,
): void {
  withOperands(call, memory, (inputs, outputs) =>
    ranges.run(call.range, () =>
      runOnDevice(inputs[0]!.device, call.op, inputs, outputs, attributes as never),
    ),
  );
}

/** Gives `run` handles to a call's operands for as long as it takes. */
export function withOperands(
  { inputs, outputs }: Call,
  memory: ProgramMemory,
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
