import { formatDuration } from '@roofline/reports';
import { z } from 'zod';
import type { CompiledAttention } from '../attention/shape.ts';
import type { DeviceDescription } from '../records/environment.ts';
import { runCellProcess } from './cell-process.ts';

export interface CompileAheadOptions {
  readonly signal?: AbortSignal;
  /** Called while it goes on, and once after it, unless there was nothing to do. */
  readonly onStatus?: (text: string) => void;
  readonly onDone?: (text: string) => void;
}

const compiled = z.object({ kernels: z.number() });

/**
 * Compiles the kernels of flash attention that cells will run on a GPU, in a process of its own, so that no cell waits for
 * them one after another. Where that fails the cells that need them compile them, or say why they cannot.
 */
export async function compileAhead(
  shapes: readonly CompiledAttention[],
  device: DeviceDescription,
  { signal, onStatus, onDone }: CompileAheadOptions,
): Promise<void> {
  if (device.type !== 'cuda' || shapes.length === 0) return;
  const start = performance.now();
  const outcome = await runCellProcess(
    {
      task: 'compile-flash-kernels',
      parameters: { shapes: [...shapes], gpu: gpuOf(device) },
      settings: {},
      deviceLabel: device.label,
    },
    {
      ...(signal ? { signal } : {}),
      onProgress: ({ done, total }) => onStatus?.(`compiling ${total} kernels: ${done} done`),
    },
  );
  if (outcome.status === 'interrupted') return;
  if (outcome.status !== 'ok') {
    onDone?.(`Kernels are compiled in their cells: ${outcome.error.message.split('\n')[0]}`);
    return;
  }
  const { kernels } = compiled.parse(outcome.result);
  if (kernels > 0) onDone?.(`compiling ${kernels} kernels: ${formatDuration(performance.now() - start)}`);
}

/** What a GPU's description says of what the choice of kernels depends on. */
export function gpuOf({ properties }: DeviceDescription): Record<GpuFact, number> {
  return {
    computeCapability: Math.round(10 * Number(properties['computeCapability'])),
    multiprocessors: Number(properties['multiprocessors']),
    maxSharedBytesPerBlock: 1024 * Number(properties['maxSharedKiBPerBlock']),
  };
}

type GpuFact = 'computeCapability' | 'multiprocessors' | 'maxSharedBytesPerBlock';
