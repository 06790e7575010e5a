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

/** What the peer is to know of a cell, which may hold more. */
type PeerCell = JsonObject & {
  readonly shape: PeerJob['config'];
  readonly peerAttention: PeerJob['attention'];
  readonly peerExecution: PeerJob['execution'];
} & Pick<PeerJob, 'batch' | 'context' | 'mode' | 'dtype' | 'recompute' | 'logits'>;

/** Has the peer prepare the cell's work. Throws PeerError where it cannot. */
export function prepareCell<Name extends PeerName>(
  peer: StepPeer<Name>,
  cell: PeerCell,
  { settings, deviceLabel }: CellContext<JsonObject & { readonly seed: number }>,
  device: Device,
): ReturnType<StepPeer<Name>['prepare']> {
  return peer.prepare({
    ...cell,
    ...{ config: cell.shape, attention: cell.peerAttention, execution: cell.peerExecution },
    ...{ device: deviceLabel, seed: settings.seed, threads: threadsOf(device) },
  });
}

/** The interpreter that the command found; see `findPython`. */
export function peerPython(): string {
  return process.env['ROOFLINE_PYTHON'] ?? 'python3';
}

export function threadsOf(device: Device): number {
  return Number(device.properties()['threads'] ?? 1);
}
