import { checkNumber, checkOptions, checkText, describeValue } from '@roofline/tensor-core';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTimer } from '../bounded-timer.ts';
import { StoreError } from '../errors.ts';
import { type Entrance, enterStore } from './enter-store.ts';
import { type FrameReader, encodeFrame, lengthBytes } from './frames.ts';
import { checkPort } from './store-server.ts';
import type { Store, StoreWaitOptions } from './store.ts';

/** Where the store is, and what it asks for. */
export interface StoreClientOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** How long to try to reach the server, and how long a call may wait. Default 300,000, five minutes. */
  readonly timeoutMs?: number;
}

const optionNames: readonly (keyof StoreClientOptions)[] = ['host', 'port', 'token', 'timeoutMs'];
const defaultTimeoutMs = 300_000;
/** How much longer than asked for the server may take until it counts as stopped. */
const graceMs = 5000;
const retryMs = 50;

interface Pending {
  readonly call: string;
  readonly timer: NodeJS.Timeout;
  resolve(reply: Reply): void;
  reject(error: StoreError): void;
}

interface Reply {
  readonly status: string;
  readonly fields: readonly Buffer[];
}

/** A connection to a StoreServer. It keeps the process alive only while a call waits. */
export class StoreClient implements Store {
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  readonly #where: string;
  /** What the server takes as one message, without its length. */
  readonly #messageBytes: number;
  readonly #pending = new Map<string, Pending>();
  #lastId = 0;
  #failure: StoreError | null = null;

  private constructor(
    { socket, reader, messageBytes }: Entrance,
    { host, port, timeoutMs }: StoreClientOptions,
  ) {
    this.#socket = socket;
    this.#messageBytes = messageBytes;
    this.#timeoutMs = timeoutMs ?? defaultTimeoutMs;
    this.#where = `the store at ${host}:${port}`;
    socket.on('data', (chunk: Buffer) => this.#hear(reader, chunk));
    socket.on('close', () => this.#fail(new StoreError(`${this.#where} has closed the connection.`)));
    socket.unref();
  }

  /**
   * Connects, again and again until there is a server or the time is over. Throws a StoreError that says why, at once
   * if the server refuses the token.
   */
  static async connect(options: StoreClientOptions): Promise<StoreClient> {
    checkStoreClientOptions(options);
    const { host, port, timeoutMs = defaultTimeoutMs } = options;
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      try {
        const entrance = await enterStore(options, Math.max(1, deadline - performance.now()));
        return new StoreClient(entrance, options);
      } catch (cause) {
        if (cause instanceof StoreError) throw cause;
        if (performance.now() + retryMs > deadline)
          throw new StoreError(
            `connect: no store answers at ${host}:${port} within ${timeoutMs} ms (${(cause as Error).message}); ` +
              'does the rank or launcher that hosts it run, and can its port be reached from here?',
            [],
            { cause },
          );
        await sleep(retryMs);
      }
    }
  }

  /** This machine's address as the server's network sees it. */
  get localAddress(): string {
    return this.#socket.localAddress!;
  }

  async set(key: string, value: Uint8Array | string): Promise<void> {
    checkText('set', 'the key', key);
    checkValue('set', value);
    await this.#ask('set', [key, value]);
  }

  async get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    checkText('get', 'the key', key);
    const [value] = await this.#wait('get', [key], options);
    return value!;
  }

  async wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    if (!Array.isArray(keys)) throw new StoreError(`wait: takes a list of keys, not ${describeValue(keys)}.`);
    for (const key of keys) checkText('wait', 'a key', key);
    await this.#wait('wait', keys, options);
  }

  async add(key: string, amount: number): Promise<number> {
    checkText('add', 'the key', key);
    checkNumber('add', 'the amount', amount, 'a whole number', Number.isSafeInteger);
    const [sum] = await this.#ask('add', [key, String(amount)]);
    return Number(sum);
  }

  async compareAndSet(
    key: string,
    expected: Uint8Array | string | null,
    value: Uint8Array | string,
  ): Promise<Uint8Array | null> {
    checkText('compareAndSet', 'the key', key);
    if (expected !== null) checkValue('compareAndSet', expected);
    checkValue('compareAndSet', value);
    const marked = expected === null ? '' : Buffer.concat([Buffer.from('='), Buffer.from(expected)]);
    const [held] = await this.#ask('compareAndSet', [key, marked, value]);
    return held!.length === 0 ? null : held!.subarray(1);
  }

  /**
   * Has the store set a key once this client's connection has ended, however it does, unless the key has a value by then.
   * Others that wait for it learn at once of a process that was killed.
   */
  async setOnceGone(key: string, value: Uint8Array | string): Promise<void> {
    checkText('setOnceGone', 'the key', key);
    checkValue('setOnceGone', value);
    await this.#ask('setOnceGone', [key, value]);
  }

  async deletePrefix(prefix: string): Promise<number> {
    checkText('deletePrefix', 'the prefix', prefix);
    const [count] = await this.#ask('deletePrefix', [prefix]);
    return Number(count);
  }

  close(): void {
    this.#fail(new StoreError(`the connection to ${this.#where} was closed here.`));
    this.#socket.destroy();
  }

  async #wait(
    call: 'wait' | 'get',
    keys: readonly string[],
    options: StoreWaitOptions = {},
  ): Promise<readonly Buffer[]> {
    checkOptions(call, options, ['timeoutMs']);
    const { timeoutMs = this.#timeoutMs } = options;
    checkNumber(call, 'timeoutMs', timeoutMs, 'a number of milliseconds above 0', isDuration);
    return await this.#ask(call, [String(timeoutMs), ...keys], timeoutMs);
  }

  async #ask(
    call: string,
    fields: readonly (Uint8Array | string)[],
    timeoutMs = this.#timeoutMs,
  ): Promise<readonly Buffer[]> {
    if (this.#failure) throw new StoreError(`${call}: ${this.#failure.message}`);
    const id = String(++this.#lastId);
    const message = encodeFrame([id, call, ...fields]);
    const byteLength = message.length - lengthBytes;
    // The server would end the connection.
    if (byteLength > this.#messageBytes)
      throw new StoreError(
        `${call}: a message of ${byteLength} bytes is too long for ${this.#where}, which takes ${this.#messageBytes} at most ` +
          '(messageBytes of StoreServer.listen).',
      );
    const { status, fields: values } = await new Promise<Reply>((resolve, reject) => {
      const timer = startTimer(() => {
        this.#fail(
          new StoreError(`${this.#where} does not answer: its host is stopped, or the network is cut.`),
        );
        this.#socket.destroy();
      }, timeoutMs + graceMs);
      this.#pending.set(id, { call, timer, resolve, reject });
      this.#socket.ref();
      this.#socket.write(message);
    });
    if (status === 'timeout') {
      const missing = values.map(String);
      const names = missing.map((key) => `"${key}"`).join(', ');
      throw new StoreError(`${call}: nobody has set ${names} within ${timeoutMs} ms.`, missing);
    }
    if (status !== 'ok') throw new StoreError(`${call}: ${this.#where} refuses: ${String(values[0])}.`);
    return values;
  }

  #hear(reader: FrameReader, chunk: Buffer): void {
    try {
      for (const [id, status, ...fields] of reader.read(chunk))
        this.#settle(String(id), { status: String(status), fields });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#fail(new StoreError(`${this.#where} answers what is no answer: ${error.message}.`));
      this.#socket.destroy();
    }
  }

  #settle(id: string, reply: Reply): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#forget(id, pending);
    pending.resolve(reply);
  }

  #fail(error: StoreError): void {
    this.#failure ??= error;
    for (const [id, pending] of this.#pending) {
      this.#forget(id, pending);
      pending.reject(new StoreError(`${pending.call}: ${error.message}`));
    }
  }

  #forget(id: string, { timer }: Pending): void {
    clearTimeout(timer);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#socket.unref();
  }
}

function isDuration(value: number): boolean {
  return Number.isFinite(value) && value > 0;
}

function checkValue(call: string, value: Uint8Array | string): void {
  if (typeof value === 'string' || value instanceof Uint8Array) return;
  throw new StoreError(`${call}: a value is a Uint8Array or text, not ${describeValue(value)}.`);
}

function checkStoreClientOptions(options: StoreClientOptions): void {
  checkOptions('connect', options, optionNames);
  checkText('connect', 'the host', options.host);
  checkText('connect', 'the token', options.token);
  checkPort('connect', options.port);
  if (options.timeoutMs !== undefined)
    checkNumber('connect', 'timeoutMs', options.timeoutMs, 'a number of milliseconds above 0', isDuration);
}
