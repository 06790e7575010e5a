import { describe, expect, it, vi } from 'vitest';
import * as t from '../../src/index.ts';
import type { OpEntry } from '../differential/programs/program.ts';
import { opTable } from '../differential/ops/table.ts';
import { liveStorages } from './collect.ts';
import { type Interrupt, type Interrupted, failingOpAt, withoutMemoryAt } from './interruptions.ts';
import { openNoOpDevice } from './no-op-kernels.ts';
import { OpCall } from './op-calls.ts';

// A call without memory collects garbage and tries again: that takes long, and would hide what was left behind.
vi.mock('../../src/tensor/lifetime/force-collection.ts', () => ({ forceCollection: () => {} }));

const devices: readonly (readonly [string, t.Device])[] = [
  ['the CPU', t.device('cpu')],
  ['a GPU of no-op kernels', openNoOpDevice()],
];

const entries = opTable.map((entry, i) => [`${entry.name} (${i})`, entry] as const);
// ROOFLINE_LIFETIME_CALLS: how many of each op, good and refused, each drawn from a seed of its own.
const calls = Number(process.env['ROOFLINE_LIFETIME_CALLS'] ?? 10);
const callsInterrupted = 3;

/** What is wrong with one call: an error that is not ours, or storages that it has left. */
function faultOf(entry: OpEntry, seed: number, device: t.Device, run: (call: OpCall) => void): string[] {
  const before = liveStorages(device);
  const call = new OpCall(entry, seed, device);
  const faults: string[] = [];
  let outcome = 'gave its result';
  try {
    run(call);
  } catch (error) {
    outcome = `threw ${String(error)}`;
    if (!(error instanceof t.RooflineError)) faults.push(`call ${seed} ${outcome}`);
  }
  call.dispose();
  const left = liveStorages(device) - before;
  return left === 0 ? faults : [...faults, `call ${seed} ${outcome} and left ${left} storages`];
}

/** What is wrong with several calls, of which some are refused. */
function faultsOf(entry: OpEntry, device: t.Device, run: (call: OpCall) => void): string[] {
  return Array.from({ length: calls }, (_, seed) => faultOf(entry, seed, device, run)).flat();
}

/** What is wrong with a call and its backward pass where each step in turn fails, by an error of the given kind. */
function faultsInterrupted(
  entry: OpEntry,
  device: t.Device,
  interrupt: Interrupt,
  kind: typeof t.OutOfMemoryError | typeof t.DeviceError,
): string[] {
  const faults: string[] = [];
  for (let seed = 0; seed < callsInterrupted; seed++) {
    let last: Interrupted;
    let failing = 0;
    do {
      last = { reached: false, error: null };
      const found = faultOf(entry, seed, device, (call) => {
        const before = call.inputs();
        const end = interrupt(failing, () => call.run(!entry.mutates));
        last = end;
        if (!end.reached || end.error === null) return;
        if (!(end.error instanceof kind)) throw new Error('another error', { cause: end.error });
        if (call.inputs().join() !== before.join()) throw new Error('an input was written');
      });
      faults.push(...found.map((fault) => `with step ${failing} failing, ${fault}`));
      failing++;
    } while (last.reached);
  }
  return faults;
}

describe.each(devices)(
  'outside every scope on %s, nothing is left to the garbage collector by',
  (_, device) => {
    describe.each(entries)('%s', (_name, entry) => {
      it('a call, good or refused, with and without its backward pass', () => {
        expect(faultsOf(entry, device, (call) => call.run(false))).toEqual([]);
        expect(faultsOf(entry, device, (call) => call.run(true))).toEqual([]);
      });

      it('a call under autocast and its backward pass', () => {
        expect(faultsOf(entry, device, (call) => t.autocast('bfloat16', () => call.run(true)))).toEqual([]);
      });

      it('a call or a backward pass that finds no memory, and its inputs stay', () => {
        expect(faultsInterrupted(entry, device, withoutMemoryAt, t.OutOfMemoryError)).toEqual([]);
      });

      it('a call or a backward pass in which an op fails, and its inputs stay', () => {
        expect(faultsInterrupted(entry, device, failingOpAt, t.DeviceError)).toEqual([]);
      });
    });
  },
);
