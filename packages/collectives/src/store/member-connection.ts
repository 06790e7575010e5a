import type { Socket } from 'node:net';
import { FrameReader, encodeFrame } from './frames.ts';
import type { KeyValues } from './key-values.ts';

/** Keys that one client may leave behind. */
const mostWills = 64;

/** Answers the requests of a client that has shown that it knows the token. What is no request ends the connection. */
export class MemberConnection {
  readonly #socket: Socket;
  readonly #values: KeyValues;
  readonly #giveUps = new Set<() => void>();
  /** What is set once the client has gone. */
  readonly #wills = new Map<string, Buffer>();

  constructor(socket: Socket, values: KeyValues, messageBytes: number) {
    this.#socket = socket;
    this.#values = values;
    const reader = new FrameReader(messageBytes);
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const [id, op, ...fields] of reader.read(chunk)) this.#answer(String(id), String(op), fields);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        socket.destroy();
      }
    });
    socket.once('close', () => {
      for (const giveUp of this.#giveUps) giveUp();
      this.#execute();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #answer(id: string, op: string, fields: readonly Buffer[]): void {
    if (op === 'wait' || op === 'get') {
      this.#wait(id, op, fields);
      return;
    }
    try {
      this.#reply(id, 'ok', this.#run(op, fields));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#reply(id, 'refused', [error.message]);
    }
  }

  #run(op: string, fields: readonly Buffer[]): (Uint8Array | string)[] {
    const [first, second, third] = fields;
    const key = String(first);
    if (op === 'set' && second) {
      this.#values.set(key, second);
      return [];
    }
    if (op === 'add' && second) return [this.#add(key, Number(second))];
    if (op === 'compareAndSet' && second && third) return this.#compareAndSet(key, second, third);
    if (op === 'setOnceGone' && second) {
      if (this.#wills.size >= mostWills) throw new RangeError(`it keeps ${mostWills} such keys of a client`);
      this.#wills.set(key, Buffer.from(second));
      return [];
    }
    if (op === 'deletePrefix' && first) return [String(this.#values.deletePrefix(key))];
    throw new RangeError(`it knows no ${op} of ${fields.length} fields`);
  }

  #execute(): void {
    for (const [key, value] of this.#wills) {
      try {
        if (this.#values.get(key) === undefined) this.#values.set(key, value);
      } catch (error) {
        // The store is full, and no one is left to notify.
        if (!(error instanceof RangeError)) throw error;
      }
    }
  }

  #add(key: string, amount: number): string {
    const before = Number(this.#values.get(key) ?? 0);
    if (!Number.isSafeInteger(before + amount)) throw new RangeError(`"${key}" holds no whole number`);
    const sum = String(before + amount);
    this.#values.set(key, Buffer.from(sum));
    return sum;
  }

  /** `expected` is '=' and a value, or empty for none; so is what is given back. */
  #compareAndSet(key: string, expected: Buffer, value: Buffer): Buffer[] {
    const held = this.#values.get(key);
    const marked = held ? Buffer.concat([Buffer.from('='), held]) : Buffer.alloc(0);
    if (!marked.equals(expected)) return [marked];
    this.#values.set(key, value);
    return [Buffer.concat([Buffer.from('='), value])];
  }

  #wait(id: string, op: 'wait' | 'get', [timeoutMs, ...keys]: readonly Buffer[]): void {
    const names = (op === 'get' ? keys.slice(0, 1) : keys).map(String);
    const answer = (missing: readonly string[]) => {
      if (missing.length > 0) this.#reply(id, 'timeout', missing);
      // Right here: a request after this one may delete the value.
      else this.#reply(id, 'ok', op === 'get' ? names.map((name) => this.#values.get(name)!) : []);
    };
    const giveUp = this.#values.wait(names, Number(timeoutMs), (missing) => {
      this.#giveUps.delete(giveUp!);
      answer(missing);
    });
    if (giveUp) this.#giveUps.add(giveUp);
    else answer([]);
  }

  #reply(id: string, status: string, fields: readonly (Uint8Array | string)[]): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame([id, status, ...fields]));
  }
}
