import { CompileError } from '../../base/errors.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { attributesOf } from '../executable/per-run-attributes.ts';
import type { Call, Operand } from '../graph/graph.ts';
import type { RunMemory } from '../executable/run-memory.ts';
import type { DeviceBuffer } from '@roofline/cuda/host';
import { CudaGraph } from '@roofline/cuda/parts';
import type { DeviceInternals } from '../../backends/cuda/device.ts';
import type { CallRecorder } from '../../backends/cuda/lower.ts';

/** A call with live attributes in a CUDA graph. */
interface PerRunCall {
  readonly call: Call;
  readonly inputs: readonly MemoryView[];
  readonly outputs: readonly MemoryView[];
  readonly nodes: number[];
  readonly workspaces: DeviceBuffer[];
  readonly share: MultiprocessorShare;
}

/** How many multiprocessors a call may stay on, where not on all. */
export type MultiprocessorShare = Pick<CallRecorder, 'multiprocessors' | 'multiprocessorsLeft'>;

/** The calls of a CUDA graph whose attributes are new in each run: their kernels get new arguments before each launch. */
export class PerRunCalls {
  readonly #parts: DeviceInternals;
  readonly #calls: PerRunCall[] = [];

  constructor(parts: DeviceInternals) {
    this.#parts = parts;
  }

  /** Records the nodes and workspaces of `call`, which is queued on a stream under capture. */
  recorderOf(
    call: Call,
    memory: RunMemory,
    share: MultiprocessorShare,
  ): Pick<CallRecorder, 'launched' | 'tookWorkspace'> {
    const { device, driver } = this.#parts;
    const place = (operand: Operand) => viewOf(operand, memory);
    const [inputs, outputs] = [call.inputs.map(place), call.outputs.map(place)];
    const captured: PerRunCall = { call, inputs, outputs, share, nodes: [], workspaces: [] };
    this.#calls.push(captured);
    return {
      launched: () => captured.nodes.push(CudaGraph.lastNode(driver, device.stream)),
      tookWorkspace: (workspace) => captured.workspaces.push(workspace),
    };
  }

  /** Gives their kernels the arguments of this run; `attributes` are in the trace's order. */
  update(graph: CudaGraph, attributes: readonly unknown[]): void {
    const { lowering } = this.#parts;
    for (const { call, inputs, outputs, share, nodes, workspaces } of this.#calls) {
      let [launches, taken] = [0, 0];
      const recorder: CallRecorder = {
        ...share,
        redirect(launch) {
          const node = nodes[launches++];
          if (node === undefined) throw changedLaunches(call);
          graph.setLaunch(node, launch);
        },
        // The nodes keep the workspaces of the capture.
        workspaceFor: () => workspaces[taken++] ?? null,
      };
      lowering.record(recorder, () =>
        lowering.run(call.op, inputs, outputs, attributesOf(call, attributes) as never),
      );
      if (launches !== nodes.length) throw changedLaunches(call);
    }
  }
}

/** An operand as lowerings see it, at its address in the CUDA graph. */
function viewOf(operand: Operand, memory: RunMemory): MemoryView {
  const tensor = memory.tensor(operand);
  const { address, offset, storage, shape, strides, dtype, size, byteLength, isContiguous } = tensor;
  const { buffer } = storage;
  tensor.dispose();
  return {
    ...{ address, offset, shape, strides, dtype, size, byteLength, isContiguous },
    storage: { byteLength: storage.byteLength, buffer },
  };
}

function changedLaunches({ op: { name }, place }: Call): CompileError {
  return new CompileError(
    `compile: ${name} launches other kernels with the attributes of this run than when it was captured; only what its ` +
      'kernels take as arguments may change, so let it stay out of next().',
    { place },
  );
}
