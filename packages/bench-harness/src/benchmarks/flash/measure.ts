import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { device as openDevice, type Device } from '@roofline/tensor-core';
import { createOperands } from '../../attention/operands.ts';
import { peerPython, threadsOf } from '../../peer/cell-peer.ts';
import { PeerError, PythonPeer } from '../../peer/python-peer.ts';
import { readyReply } from '../../peer/step-peer.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { compete, type Contender } from './contender.ts';
import { CacheFlush, flushedBytesOf, OwnContender } from './own-contender.ts';
import type { FlashCell, FlashSettings } from './parameters.ts';
import type { FlashResult, Timed } from './result.ts';
import { failureOf, TorchContender } from './torch-contender.ts';

type Progress = CellContext<FlashSettings>['progress'];

/** Measures one cell, in the cell's own process. */
export function measureFlash(
  cell: FlashCell,
  { deviceLabel, settings, progress }: CellContext<FlashSettings>,
): Promise<FlashResult> {
  return timeContenders(openDevice(deviceLabel as `cuda:${number}`), cell, settings, progress);
}

/** Times all attentions of a cell in turn, ours and, with a peer, PyTorch's. */
export async function timeContenders(
  device: Device,
  cell: FlashCell,
  settings: FlashSettings,
  progress: Progress,
  flushedBytes = flushedBytesOf(device),
): Promise<FlashResult> {
  using operands = createOperands(cell, device, settings.seed);
  using flush = new CacheFlush(device, flushedBytes);
  const ours = settings.attentions.map((kind) => new OwnContender(kind, device, operands, flush));
  if (settings.peer === null) {
    return { timed: await run(ours, settings, progress), flushedBytes, torch: null };
  }
  const threads = threadsOf(device);
  const peer = new PythonPeer('torch_attention.py', peerPython(), threads);
  try {
    const { seed, peerAttentions } = settings;
    const job = { command: 'prepare', ...cell, device: device.label, seed, threads, flushedBytes };
    const torch = await peer.request(job, readyReply).catch(peerErrorOf);
    if (torch instanceof PeerError) {
      const unstarted = peerAttentions.map((attention): Timed => {
        return { side: 'torch', attention, outcome: failureOf(torch) };
      });
      return { timed: [...(await run(ours, settings, progress)), ...unstarted], flushedBytes, torch: null };
    }
    const theirs = peerAttentions.map((attention) => new TorchContender(attention, peer));
    return { timed: await run([...ours, ...theirs], settings, progress), flushedBytes, torch };
  } finally {
    await peer.close();
  }
}

async function run(
  contenders: readonly Contender[],
  { passes, rounds, warmupMs, repeatMs }: FlashSettings,
  progress: Progress,
): Promise<Timed[]> {
  const total = contenders.length * (1 + rounds * passes.length);
  let done = 0;
  const outcomes = await compete(contenders, {
    passes,
    rounds,
    turn: { warmupMs, repeatMs: repeatMs / rounds },
    async onTurn() {
      progress(++done, total, 'turns');
      // Lets finalizers run, and the process notice that its runner is gone.
      await turnOfTheEventLoop();
    },
  });
  return contenders.map(({ name }, index) => ({ ...name, outcome: outcomes[index]! }) as Timed);
}

/** The error of a peer; any other is thrown. */
function peerErrorOf(error: unknown): PeerError {
  if (error instanceof PeerError) return error;
  throw error;
}
