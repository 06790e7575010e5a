import { type Socket, connect } from 'node:net';
import { startTimer } from '../bounded-timer.ts';
import { StoreError } from '../errors.ts';
import { FrameReader } from './frames.ts';
import { answerChallenge, challengeBytes } from './token.ts';

const largestMessageBytes = 2 ** 28;

interface StorePlace {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

/** A connection on which a server has said welcome. */
export interface Entrance {
  readonly socket: Socket;
  readonly reader: FrameReader;
  /** What the server takes as one message. */
  readonly messageBytes: number;
}

/** Connects and shows that it knows the token. Throws a StoreError only where trying again is of no use. */
export async function enterStore({ host, port, token }: StorePlace, timeoutMs: number): Promise<Entrance> {
  const socket = connect({ host, port, noDelay: true });
  const reader = new FrameReader(largestMessageBytes);
  try {
    const [word, largest = Infinity] = await verdictOf(socket, reader, token, timeoutMs);
    if (word === 'refused') throw refusal(host, port);
    if (word !== 'welcome') throw new Error('what answers there is no store');
    socket.removeAllListeners();
    // 'close' follows, and notifies waiters.
    socket.on('error', () => {});
    return { socket, reader, messageBytes: Number(largest) };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Answers the server's challenge, and gives what it says to that, word by word. */
function verdictOf(socket: Socket, reader: FrameReader, token: string, timeoutMs: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const timer = startTimer(() => reject(new Error('it did not answer')), timeoutMs);
    let challenge = Buffer.alloc(0);
    let hasAnswered = false;
    socket.on('data', (chunk: Buffer) => {
      if (hasAnswered) {
        const verdict = readVerdict(reader, chunk);
        if (verdict === null) return;
        clearTimeout(timer);
        resolve(verdict);
        return;
      }
      challenge = Buffer.concat([challenge, chunk]);
      if (challenge.length < challengeBytes) return;
      hasAnswered = true;
      socket.write(answerChallenge(token, challenge));
    });
    socket.once('error', reject);
    // Also where others, who come all at once, took the place.
    socket.once('close', () => reject(new Error('it closed the connection')));
    socket.once('close', () => clearTimeout(timer));
  });
}

/** The words of a verdict; null as long as it is not whole. */
function readVerdict(reader: FrameReader, chunk: Buffer): string[] | null {
  try {
    const [message] = reader.read(chunk);
    return message ? message.map(String) : null;
  } catch {
    return ['nonsense'];
  }
}

function refusal(host: string, port: number): StoreError {
  return new StoreError(`connect: the store at ${host}:${port} refuses the token; all ranks need the same.`);
}
