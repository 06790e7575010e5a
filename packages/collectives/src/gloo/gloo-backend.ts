import { HostMemory } from '@roofline/cuda/host';
import { RooflineError } from '@roofline/tensor-core';
import { Socket } from 'node:net';
import type { Backend, Outcome, PendingCall, RunningCall } from '../group/backend.ts';
import { type GlooLibrary, glooLibrary } from './gloo-library.ts';
import { dtypeCodes, kinds, readOutcome, reductionCodes } from './native-codes.ts';

export interface GlooMeshOptions {
  readonly rank: number;
  readonly size: number;
  /** This machine's address for the others; '' to let `interfaceName` say it. */
  readonly host: string;
  readonly interfaceName: string;
  readonly timeoutMs: number;
}

const textBytes = 65_536;
const addressBytes = 65_536;

/** Groups that are open: their threads must end before the process takes their memory away. */
const open = new Set<GlooBackend>();

let closesAtExit = false;

function closeAtExit(backend: GlooBackend): void {
  open.add(backend);
  if (closesAtExit) return;
  closesAtExit = true;
  process.on('exit', () => {
    for (const backend of open) backend.close();
  });
}

/** Gloo, on threads of its own; see native/gloo_shim.cc. */
export class GlooBackend implements Backend {
  readonly name = 'gloo';
  readonly deviceType = 'cpu';
  readonly device = null;
  readonly ordersPairs = false;
  readonly programs = null;
  readonly symmetricMemory = null;
  readonly multiprocessors = 0;
  readonly #library: GlooLibrary = glooLibrary();
  readonly #group: number;
  readonly #size: number;
  readonly #text = new HostMemory(textBytes);
  readonly #ran = new HostMemory(2 * BigInt64Array.BYTES_PER_ELEMENT);
  readonly #ranNs: BigInt64Array;
  readonly #notified: Socket;
  readonly #listeners = new Map<number, (outcome: Outcome) => void>();
  #isClosed = false;

  /** Listens for its peers. Throws a RooflineError (code GLOO) where that is not possible. */
  constructor({ rank, size, host, interfaceName, timeoutMs }: GlooMeshOptions) {
    this.#size = size;
    const { buffer, byteOffset } = this.#ran.bytes;
    this.#ranNs = new BigInt64Array(buffer, byteOffset, 2);
    this.#group = this.#library.open(rank, size, host, interfaceName, timeoutMs);
    if (this.#group === 0) {
      const place = interfaceName === '' ? `address ${host}` : `interface ${interfaceName}`;
      throw new RooflineError('GLOO', `gloo: cannot listen at this machine's ${place}: ${this.#lastError()}`);
    }
    this.#notified = new Socket({ fd: this.#library.notified(this.#group), readable: true, writable: false });
    this.#notified.on('data', () => this.#tellSettled());
    this.#notified.unref();
    closeAtExit(this);
  }

  /** Where the other ranks find this one, one text each, in the order of ranks with '' for itself. */
  addresses(rank: number): string[] {
    const memory = new HostMemory(addressBytes);
    const byteLength = this.#library.addresses(this.#group, memory.address, addressBytes);
    if (byteLength < 0)
      throw new RooflineError('GLOO', `gloo: the addresses of ${this.#size} ranks are too long.`);
    const each = byteLength / Math.max(1, this.#size - 1);
    const texts = Array.from({ length: this.#size - 1 }, (_, i) =>
      Buffer.from(memory.bytes.slice(i * each, (i + 1) * each)).toString('base64'),
    );
    return texts.toSpliced(rank, 0, '');
  }

  /** Connects to the peers at their addresses for this rank. */
  connect(addresses: readonly string[], onSettled: (outcome: Outcome) => void): RunningCall {
    const bytes = Buffer.concat(addresses.map((text) => Buffer.from(text, 'base64')));
    return this.#start([kinds.connect, 0, 0, 0, 0, 0, 0, bytes, bytes.length], onSettled);
  }

  start(calls: readonly PendingCall[]): RunningCall {
    const running = calls.map((call) => this.#startOne(call));
    return {
      wait() {
        for (const call of running) call.wait();
      },
    };
  }

  #startOne(pending: PendingCall): RunningCall {
    const { kind, dtype, reduction, root, input, output, count, description } = pending.call;
    const text = Buffer.from(description);
    return this.#start(
      [
        kinds[kind],
        dtypeCodes[dtype]!,
        reductionCodes[reduction],
        root,
        input,
        output,
        count,
        text,
        text.length,
      ],
      (outcome) => pending.onSettled(outcome),
    );
  }

  #start(parameters: readonly (number | Uint8Array)[], onSettled: (outcome: Outcome) => void): RunningCall {
    if (this.#isClosed) return failed('the group has been disposed', onSettled);
    const ticket = this.#library.start(this.#group, ...parameters);
    if (ticket < 0) return failed(this.#lastError(), onSettled);
    this.#listeners.set(ticket, onSettled);
    // What is under way keeps the process alive.
    this.#notified.ref();
    return { wait: () => this.#wait(ticket) };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    open.delete(this);
    // Ends the threads: nothing writes to the tensors from here on.
    this.#library.close(this.#group);
    this.#notified.destroy();
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners)
      listener({ status: 'failed', losses: new Map(), message: 'the group was disposed meanwhile' });
  }

  #wait(ticket: number): void {
    if (!this.#listeners.has(ticket)) return;
    this.#library.wait(this.#group, ticket);
    // With those before it, which may hold memory that nothing else asks for.
    this.#tellSettled();
  }

  #tellSettled(): void {
    for (const ticket of this.#listeners.keys()) this.#tellIfSettled(ticket);
  }

  #tellIfSettled(ticket: number): void {
    // A listener may have closed the group.
    if (this.#isClosed) return;
    const { address } = this.#text;
    const state = this.#library.finish(this.#group, ticket, this.#ran.address, address, textBytes);
    const outcome = readOutcome(state, this.#readText(), this.#ranNs);
    if (!outcome) return;
    const listener = this.#listeners.get(ticket)!;
    this.#listeners.delete(ticket);
    if (this.#listeners.size === 0) this.#notified.unref();
    listener(outcome);
  }

  #lastError(): string {
    this.#library.lastError(this.#text.address, textBytes);
    return this.#readText();
  }

  #readText(): string {
    const { bytes } = this.#text;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.indexOf(0)).toString();
  }
}

/** A call that fails before it runs. */
function failed(message: string, onSettled: (outcome: Outcome) => void): RunningCall {
  onSettled({ status: 'failed', losses: new Map(), message });
  return { wait: () => {} };
}
