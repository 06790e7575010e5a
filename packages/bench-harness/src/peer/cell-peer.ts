import type { Device } from '@roofline/tensor-core';
import { z } from 'zod';
import type { CellContext } from '../runner/cell-task.ts';
import type { JsonObject } from '../records/json.ts';
import { cellError } from '../records/record.ts';
import type { PeerError } from './python-peer.ts';
import type { PeerName } from './kinds.ts';
import { StepPeer, type PeerJob } from './step-peer.ts';

/** Why a cell has nothing from the peer. */
export const failedPeer = z.object({ status: z.enum(['failed', 'out-of-memory']), error: cellError });
export type FailedPeer = z.infer<typeof failedPeer>;

export function describeFailure({ name, message, code }: PeerError): FailedPeer {
  return {
    status: code === 'OUT_OF_MEMORY' ? 'out-of-memory' : 'failed',
    error: { name, message, code },
  };
}

/** Starts a peer of a cell's process; it gets as many threads as our CPU device has. */
export function startPeer<Name extends PeerName>(name: Name, device: Device): StepPeer<Name> {
  return new StepPeer(name, peerPython(), threadsOf(device));
}

/** What the peer is to know of a cell. */
type PeerCell = Omit<PeerJob, 'config' | 'attention' | 'execution' | 'device' | 'seed' | 'threads'> & {
  readonly shape: PeerJob['config'];
  readonly peerAttention: PeerJob['attention'];
  readonly peerExecution: PeerJob['execution'];
};

/** Has the peer prepare the cell's work. Throws PeerError where it cannot. */
export function prepareCell<Name extends PeerName>(
  peer: StepPeer<Name>,
  {
    shape: config,
    context,
    batch,
    mode,
    dtype,
    peerAttention: attention,
    peerExecution: execution,
    recompute,
    logits,
  }: PeerCell,
  { settings, deviceLabel }: CellContext<JsonObject & { readonly seed: number }>,
  device: Device,
): ReturnType<StepPeer<Name>['prepare']> {
  const { seed } = settings;
  const threads = threadsOf(device);
  const work = { config, context, batch, mode, dtype, attention, execution, recompute, logits };
  return peer.prepare({ ...work, device: deviceLabel, seed, threads });
}

/** The interpreter that the command found; see `findPython`. */
export function peerPython(): string {
  return process.env['ROOFLINE_PYTHON'] ?? 'python3';
}

export function threadsOf(device: Device): number {
  return Number(device.properties()['threads'] ?? 1);
}
