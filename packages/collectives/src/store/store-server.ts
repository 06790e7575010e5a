import { checkCount, checkOptions, checkText } from '@roofline/tensor-core';
import { randomBytes } from 'node:crypto';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { startTimer } from '../bounded-timer.ts';
import { StoreError } from '../errors.ts';
import { encodeFrame } from './frames.ts';
import { KeyValues } from './key-values.ts';
import { MemberConnection } from './member-connection.ts';
import { challengeBytes, isRightAnswer } from './token.ts';

/** Where the store listens, and for whom. */
export interface StoreServerOptions {
  /** The address to listen at. Default 127.0.0.1: this machine alone. */
  readonly host?: string;
  /** Default 0: one that is free. */
  readonly port?: number;
  /** What clients must know; empty lets everyone in who can reach the port. */
  readonly token: string;
  /** How long a client may take to show that it knows the token. Default 5000. */
  readonly helloTimeoutMs?: number;
  /** How many clients may be about to show it; the oldest goes for a newer one. Default 64. */
  readonly strangers?: number;
  /** Bytes of one message. Default 16 MiB. */
  readonly messageBytes?: number;
  /** Bytes of all keys and values. Default 256 MiB. */
  readonly storedBytes?: number;
}

const optionNames: readonly (keyof StoreServerOptions)[] = [
  'host',
  'port',
  'token',
  'helloTimeoutMs',
  'strangers',
  'messageBytes',
  'storedBytes',
];

/**
 * The rendezvous store: keys and values over TCP, in the memory of the process that hosts it. A client that does not
 * know the token can send 32 bytes, within a limited time, and reads nothing but a random challenge and that it is
 * refused. What members send is not encrypted: this is for trusted networks. It does not keep the process alive.
 */
export class StoreServer {
  readonly #server: Server;
  readonly #token: string;
  readonly #helloTimeoutMs: number;
  readonly #strangersAtMost: number;
  readonly #messageBytes: number;
  readonly #values: KeyValues;
  /** In the order in which they came. */
  readonly #strangers = new Set<Socket>();
  readonly #members = new Set<MemberConnection>();

  private constructor(server: Server, options: StoreServerOptions) {
    this.#server = server;
    this.#token = options.token;
    this.#helloTimeoutMs = options.helloTimeoutMs ?? 5000;
    this.#strangersAtMost = options.strangers ?? 64;
    this.#messageBytes = options.messageBytes ?? 2 ** 24;
    this.#values = new KeyValues(options.storedBytes ?? 2 ** 28);
    server.on('connection', (socket) => this.#meet(socket));
    server.unref();
  }

  /** Starts one. Throws a StoreError if it cannot listen there. */
  static async listen(options: StoreServerOptions): Promise<StoreServer> {
    checkStoreServerOptions(options);
    const { host = '127.0.0.1', port = 0 } = options;
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) =>
        reject(
          new StoreError(
            `StoreServer.listen: cannot listen at ${host}:${port}: ${cause.message}; take another port.`,
            [],
            { cause },
          ),
        ),
      );
      server.listen(port, host, resolve);
    });
    return new StoreServer(server, options);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections; clients that wait get an error. */
  close(): void {
    this.#server.close();
    for (const stranger of this.#strangers) stranger.destroy();
    for (const member of this.#members) member.close();
  }

  #meet(socket: Socket): void {
    socket.unref();
    // What goes wrong with one client is its own; 'close' follows.
    socket.on('error', () => {});
    this.#makeRoom();
    this.#strangers.add(socket);
    const timer = startTimer(() => socket.destroy(), this.#helloTimeoutMs);
    timer.unref();
    const forget = (): void => {
      clearTimeout(timer);
      this.#strangers.delete(socket);
    };
    socket.once('close', forget);
    this.#challenge(socket, () => {
      forget();
      this.#welcome(socket);
    });
  }

  #makeRoom(): void {
    if (this.#strangers.size < this.#strangersAtMost) return;
    const [oldest] = this.#strangers;
    oldest!.destroy();
    this.#strangers.delete(oldest!);
  }

  /** Calls `onPassed` once the client has answered a random challenge as one that knows the token; refuses any other. */
  #challenge(socket: Socket, onPassed: () => void): void {
    const challenge = randomBytes(challengeBytes);
    let answer = Buffer.alloc(0);
    const hear = (chunk: Buffer): void => {
      if (answer.length + chunk.length > challengeBytes) {
        socket.destroy();
        return;
      }
      answer = Buffer.concat([answer, chunk]);
      if (answer.length < challengeBytes) return;
      if (!isRightAnswer(this.#token, challenge, answer)) {
        // Said, since a connection that just ends may have had to make room.
        socket.end(encodeFrame(['refused']));
        return;
      }
      socket.off('data', hear);
      onPassed();
    };
    socket.on('data', hear);
    socket.write(challenge);
  }

  #welcome(socket: Socket): void {
    const member = new MemberConnection(socket, this.#values, this.#messageBytes);
    this.#members.add(member);
    socket.once('close', () => this.#members.delete(member));
    socket.write(encodeFrame(['welcome', String(this.#messageBytes)]));
  }
}

function checkStoreServerOptions(options: StoreServerOptions): void {
  const owner = 'listen';
  checkOptions(owner, options, optionNames);
  checkText(owner, 'the token', options.token);
  if (options.host !== undefined) checkText(owner, 'the host', options.host);
  if (options.port !== undefined) checkPort(owner, options.port);
  for (const name of ['helloTimeoutMs', 'strangers', 'messageBytes', 'storedBytes'] as const) {
    const value = options[name];
    if (value !== undefined) checkCount(owner, name, value, 1);
  }
}

/** Throws a StoreError unless `port` is one; 0 is any that is free. */
export function checkPort(owner: string, port: number): void {
  if (Number.isInteger(port) && port >= 0 && port < 65536) return;
  throw new StoreError(`${owner}: the port must be a whole number from 0 to 65535, not ${String(port)}.`);
}
