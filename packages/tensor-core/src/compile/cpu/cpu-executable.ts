import { CompileError, DeviceError } from '../../base/errors.ts';
import { explainCalls } from '../executable/explained-call.ts';
import { runCall } from '../executable/interpreter.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { lastUses } from '../graph/liveness.ts';
import type { PerRunAttributes } from '../executable/per-run-attributes.ts';
import {
  type Binding,
  type ProgramRunner,
  type RunnerFacts,
  nothingSpared,
} from '../executable/executable.ts';
import type { Call, Program } from '../graph/graph.ts';
import { ProgramMemory } from '../executable/run-memory.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import { ScalarMemory } from '../../backends/cpu/lowering/scalar-memory.ts';
import { Session } from '../../onnx/session.ts';
import { type Step, stepsOf } from './schedule.ts';
import type { InputPort, Segment } from './segment-builder.ts';

/** A step made ready, and the made storages that nothing behind it uses. */
interface ReadyStep {
  run(memory: ProgramMemory, live: PerRunAttributes, ranges: ReopenedRanges): void;
  readonly calls: readonly Call[];
  readonly unused: readonly number[];
  /** Of its graph; 1 for a call. */
  readonly nodes: number;
  dispose(): void;
}

/** A program as ONNX sessions: one, where no call has to run by itself. */
export class CpuProgram implements ProgramRunner {
  readonly tellsReplays = false;
  readonly #program: Program;
  readonly #steps: readonly ReadyStep[];

  constructor(program: Program) {
    this.#program = program;
    const steps = stepsOf(program);
    const unused = lastUses(
      program,
      steps.map(({ calls }) => calls),
    );
    this.#steps = steps.map((step, i) => readyStep(step, program, unused[i]!));
  }

  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage> {
    const memory = new ProgramMemory(this.#program, bindings);
    const ranges = new ReopenedRanges();
    try {
      for (const step of this.#steps) {
        step.run(memory, live, ranges);
        memory.free(step.unused);
      }
      return memory.take();
    } finally {
      memory.freeAll();
    }
  }

  facts(): RunnerFacts {
    const nodes = this.#steps.reduce((sum, step) => sum + step.nodes, 0);
    const launches = this.#steps.map(({ calls }) => calls);
    return {
      launches: launches.length,
      nodes,
      nodesBefore: nodes,
      table: explainCalls(this.#program, launches, null),
      fused: new Map(),
      ...nothingSpared,
    };
  }

  dispose(): void {
    for (const step of this.#steps) step.dispose();
  }
}

function readyStep({ calls, segment }: Step, program: Program, unused: readonly number[]): ReadyStep {
  if (segment) return new SegmentStep(segment, calls, program, unused);
  return {
    calls,
    unused,
    nodes: calls.length,
    run: (memory, live, ranges) => {
      for (const call of calls) runCall(call, memory, live.of(call), ranges);
    },
    dispose() {},
  };
}

class SegmentStep implements ReadyStep {
  readonly calls: readonly Call[];
  readonly unused: readonly number[];
  readonly nodes: number;
  readonly #segment: Segment;
  readonly #program: Program;
  readonly #session: Session;
  /** Of each scalar among the inputs. */
  readonly #scalars: readonly (ScalarMemory | null)[];

  constructor(segment: Segment, calls: readonly Call[], program: Program, unused: readonly number[]) {
    this.#segment = segment;
    this.calls = calls;
    this.nodes = segment.graph.operations.length;
    this.#program = program;
    this.unused = unused;
    this.#scalars = segment.inputs.map((port) =>
      port.kind === 'scalar' ? new ScalarMemory(port.dtype, 1) : null,
    );
    try {
      this.#session = new Session(segment.graph);
    } catch (cause) {
      if (!(cause instanceof DeviceError)) throw cause;
      throw new CompileError(`compile: a graph of the ops ${namesOf(calls)} is refused: ${cause.message}`, {
        cause,
      });
    }
  }

  /** What is written in place is calculated beside, and then takes the place of the old elements. */
  run(memory: ProgramMemory, live: PerRunAttributes): void {
    const { inputs, outputs } = this.#segment;
    const addresses = inputs.map((port, i) => this.#address(port, i, memory, live));
    const replaced: { readonly old: Binding; readonly fresh: Storage }[] = [];
    try {
      for (const { storage } of outputs) {
        const old = memory.given(storage) ?? memory.existing(storage);
        if (!old) {
          addresses.push(memory.addressOf(storage));
          continue;
        }
        const fresh = new Storage(this.#program.device, this.#program.storages[storage]!.byteLength);
        replaced.push({ old, fresh });
        addresses.push(fresh.buffer.address);
      }
      this.#session.run(addresses);
      for (const { old, fresh } of replaced) swapBuffers(old, fresh);
    } finally {
      for (const { fresh } of replaced) fresh.release();
    }
  }

  dispose(): void {
    this.#session.dispose();
  }

  #address(port: InputPort, index: number, memory: ProgramMemory, live: PerRunAttributes): number {
    if (port.kind === 'memory') return memory.addressOf(port.storage) + port.byteOffset;
    const { call } = port;
    const scalars = this.#scalars[index]!;
    scalars.write([call.op.scalars!(live.of(call) as never)[port.index]!]);
    return scalars.addressOf(0);
  }
}

/** A program's storage is all of the one that it is bound to wherever it is written. */
function swapBuffers({ storage }: Binding, fresh: Storage): void {
  const { buffer } = storage;
  storage.buffer = fresh.buffer;
  fresh.buffer = buffer;
}

function namesOf(calls: readonly Call[]): string {
  const names = [...new Set(calls.map(({ op }) => op.name))];
  return names.length > 12 ? `${names.slice(0, 12).join(', ')} and others` : names.join(', ');
}
