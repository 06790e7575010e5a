import { CompileError } from '../../base/errors.ts';
import { DeviceError } from '@roofline/cuda/host';
import { explainCalls } from '../executable/explained-call.ts';
import { runCall } from '../executable/interpreter.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { lastUses } from '../graph/liveness.ts';
import type { PerRunAttributes } from '../executable/per-run-attributes.ts';
import {
  type Binding,
  type Executable,
  type ExecutableFacts,
  nothingSpared,
} from '../executable/executable.ts';
import type { Call, Graph } from '../graph/graph.ts';
import { RunMemory } from '../executable/run-memory.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import { ScalarMemory } from '../../backends/cpu/lowering/scalar-memory.ts';
import { Session } from '../../onnx/session.ts';
import { type Step, scheduleSteps } from './schedule.ts';
import type { InputPort, Segment } from './segment-builder.ts';

/** A step ready to run, and the made storages that no later step uses. */
interface ReadyStep {
  run(memory: RunMemory, live: PerRunAttributes, ranges: ReopenedRanges): void;
  readonly calls: readonly Call[];
  readonly unused: readonly number[];
  /** Nodes of its ONNX graph; 1 for a single call. */
  readonly nodes: number;
  dispose(): void;
}

/** A graph as ONNX sessions, and calls that run by themselves; a single session if there are none of those. */
export class CpuExecutable implements Executable {
  readonly tellsReplays = false;
  readonly #graph: Graph;
  readonly #steps: readonly ReadyStep[];

  constructor(graph: Graph) {
    this.#graph = graph;
    const steps = scheduleSteps(graph);
    const unused = lastUses(
      graph,
      steps.map(({ calls }) => calls),
    );
    this.#steps = steps.map((step, i) => readyStep(step, graph, unused[i]!));
  }

  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage> {
    const memory = new RunMemory(this.#graph, bindings);
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

  facts(): ExecutableFacts {
    const nodes = this.#steps.reduce((sum, step) => sum + step.nodes, 0);
    const launches = this.#steps.map(({ calls }) => calls);
    return {
      launches: launches.length,
      nodes,
      nodesBefore: nodes,
      table: explainCalls(this.#graph, launches),
      fused: new Map(),
      ...nothingSpared,
    };
  }

  dispose(): void {
    for (const step of this.#steps) step.dispose();
  }
}

function readyStep({ calls, segment }: Step, graph: Graph, unused: readonly number[]): ReadyStep {
  if (segment) return new SegmentStep(segment, calls, graph, unused);
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
  readonly #graph: Graph;
  readonly #session: Session;
  /** By input: the memory of a scalar, null for other inputs. */
  readonly #scalars: readonly (ScalarMemory | null)[];

  constructor(segment: Segment, calls: readonly Call[], graph: Graph, unused: readonly number[]) {
    this.#segment = segment;
    this.calls = calls;
    this.nodes = segment.graph.operations.length;
    this.#graph = graph;
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

  /** A storage written in place gets a new buffer, which replaces the old one after the run. */
  run(memory: RunMemory, live: PerRunAttributes): void {
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
        const fresh = new Storage(this.#graph.device, this.#graph.storages[storage]!.byteLength);
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

  #address(port: InputPort, index: number, memory: RunMemory, live: PerRunAttributes): number {
    if (port.kind === 'memory') return memory.addressOf(port.storage) + port.byteOffset;
    const { call } = port;
    const scalars = this.#scalars[index]!;
    scalars.write([call.op.scalars!(live.of(call) as never)[port.index]!]);
    return scalars.addressOf(0);
  }
}

/** A storage that the graph writes is always bound to a whole one, so buffers can be swapped. */
function swapBuffers({ storage }: Binding, fresh: Storage): void {
  const { buffer } = storage;
  storage.buffer = fresh.buffer;
  fresh.buffer = buffer;
}

function namesOf(calls: readonly Call[]): string {
  const names = [...new Set(calls.map(({ op }) => op.name))];
  return names.length > 12 ? `${names.slice(0, 12).join(', ')} and others` : names.join(', ');
}
