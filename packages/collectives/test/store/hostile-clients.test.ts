import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { encodeFrame } from '../../src/store/frames.ts';
import { StoreClient } from '../../src/store/store-client.ts';
import { StoreServer, type StoreServerOptions } from '../../src/store/store-server.ts';
import { answerChallenge, challengeBytes } from '../../src/store/token.ts';

let server: StoreServer;
const token = 'right';
const sockets: Socket[] = [];

async function listen(options: Partial<StoreServerOptions> = {}): Promise<void> {
  server = await StoreServer.listen({ token, ...options });
}

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
});

/** A connection, and all bytes that come on it. */
async function stranger(): Promise<{ socket: Socket; closed: Promise<void>; bytes: () => Buffer }> {
  const socket = connect({ host: '127.0.0.1', port: server.port });
  sockets.push(socket);
  socket.on('error', () => {});
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  return { socket, closed, bytes: () => Buffer.concat(chunks) };
}

async function challengeOf({ bytes }: { bytes: () => Buffer }): Promise<Buffer> {
  while (bytes().length < challengeBytes) await new Promise((resolve) => setTimeout(resolve, 2));
  return bytes().subarray(0, challengeBytes);
}

/** A stranger that has shown that it knows the token, and now sends what it likes. */
async function member(): ReturnType<typeof stranger> {
  const client = await stranger();
  client.socket.write(answerChallenge(token, await challengeOf(client)));
  while (client.bytes().length === challengeBytes) await new Promise((resolve) => setTimeout(resolve, 2));
  return client;
}

const stillServes = async () => {
  const client = await StoreClient.connect({ host: '127.0.0.1', port: server.port, token, timeoutMs: 5000 });
  await client.set('x', 'y');
  expect(new TextDecoder().decode(await client.get('x'))).toBe('y');
  client.close();
};

describe('without the token', () => {
  it('a wrong one is refused at once, and said to be', async () => {
    await listen();
    const error = await StoreClient.connect({
      host: '127.0.0.1',
      port: server.port,
      token: 'wrong',
      timeoutMs: 60_000,
    }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain('refuses the token');
    await stillServes();
  });

  it('only a challenge is answered, a new one each time', async () => {
    await listen();
    const [a, b] = [await stranger(), await stranger()];
    const [first, second] = [await challengeOf(a), await challengeOf(b)];
    expect(first.equals(second)).toBe(false);
    // What answers the one challenge does not answer the other.
    b.socket.write(answerChallenge(token, first));
    await b.closed;
    expect(b.bytes().subarray(challengeBytes)).toEqual(encodeFrame(['refused']));
  });

  it('requests before it end the connection', async () => {
    await listen();
    const client = await stranger();
    client.socket.write(encodeFrame(['1', 'set', 'x', 'evil']));
    client.socket.write(Buffer.alloc(1000));
    await client.closed;
    await stillServes();
  });

  it('a right answer with a byte after it is refused', async () => {
    await listen();
    const client = await stranger();
    const answer = answerChallenge(token, await challengeOf(client));
    client.socket.write(Buffer.concat([answer, Buffer.alloc(1)]));
    await client.closed;
    expect(client.bytes()).toHaveLength(challengeBytes);
  });

  it('one that says nothing, or too little, is left after the time for it', async () => {
    await listen({ helloTimeoutMs: 60 });
    const [silent, slow] = [await stranger(), await stranger()];
    slow.socket.write('a');
    await Promise.all([silent.closed, slow.closed]);
    await stillServes();
  });

  it('a member that has to make room for others just before it is let in tries again', async () => {
    await listen();
    let connections = 0;
    const crowded = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      if (++connections === 1) {
        socket.write(Buffer.alloc(challengeBytes));
        socket.once('data', () => socket.end());
        return;
      }
      const onwards = connect({ host: '127.0.0.1', port: server.port });
      sockets.push(onwards);
      socket.pipe(onwards).pipe(socket);
    });
    await new Promise<void>((resolve) => crowded.listen(0, '127.0.0.1', resolve));
    const { port } = crowded.address() as AddressInfo;
    const client = await StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 10_000 });
    expect(connections).toBe(2);
    client.close();
    crowded.close();
  });

  it('more members at once than may be about to show it all come in', async () => {
    await listen({ strangers: 4 });
    const place = { host: '127.0.0.1', port: server.port, token, timeoutMs: 60_000 };
    const clients = await Promise.all(Array.from({ length: 100 }, () => StoreClient.connect(place)));
    for (const client of clients) client.close();
  });

  it('many at once do not keep members out, and those who joined stay', async () => {
    await listen({ strangers: 4, helloTimeoutMs: 60_000 });
    const joined = await member();
    const crowd = await Promise.all(Array.from({ length: 30 }, () => stranger()));
    await stillServes();
    await Promise.all(crowd.slice(0, 20).map(({ closed }) => closed));
    expect(joined.socket.destroyed).toBe(false);
  });
});

describe('with it', () => {
  it.each([
    ['a message of 4 GB', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['one above the limit', Buffer.from([0, 0, 1, 0])],
    ['a field longer than its message', Buffer.from([4, 0, 0, 0, 9, 0, 0, 0])],
    ['half a length', Buffer.from([2, 0, 0, 0, 0, 0])],
  ])('%s ends that connection alone', async (_, bytes) => {
    await listen({ messageBytes: 1000 });
    const [bad, good] = [await member(), await member()];
    bad.socket.write(bytes);
    await bad.closed;
    expect(good.socket.destroyed).toBe(false);
    await stillServes();
  });

  it('what is not a request is refused', async () => {
    await listen();
    const client = await member();
    const frames = [
      ['1', 'dance', 'x'],
      ['2', 'set', 'key alone'],
      ['3'],
      [],
      ['4', 'wait'],
      ['5', 'add', 'x', 'NaN'],
    ];
    for (const fields of frames) client.socket.write(encodeFrame(fields));
    while (!client.bytes().includes('no whole number'))
      await new Promise((resolve) => setTimeout(resolve, 5));
    await stillServes();
  });

  it('what does not fit is refused, and space that was given back is reused', async () => {
    await listen({ storedBytes: 100 });
    const client = await StoreClient.connect({
      host: '127.0.0.1',
      port: server.port,
      token,
      timeoutMs: 5000,
    });
    await client.set('a', Buffer.alloc(80));
    await expect(client.set('b', Buffer.alloc(80))).rejects.toThrow('it holds 100 bytes at most');
    await client.set('a', Buffer.alloc(90));
    await client.deletePrefix('a');
    await client.set('b', Buffer.alloc(80));
    client.close();
  });

  it('what is longer than a message may be is refused before it is sent, and the connection stays', async () => {
    await listen({ messageBytes: 1000 });
    const { port } = server;
    const client = await StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 5000 });
    const refusal =
      /: a message of 1\d\d\d bytes is too long for the store at 127\.0\.0\.1:\d+, which takes 1000 at most/;
    await expect(client.set('key', Buffer.alloc(1000))).rejects.toThrow(refusal);
    await expect(client.set('k'.repeat(1000), 'value')).rejects.toThrow(refusal);
    await expect(client.wait(['k'.repeat(500), 'l'.repeat(500)])).rejects.toThrow(refusal);
    await client.set('key', Buffer.alloc(900));
    expect(await client.get('key')).toHaveLength(900);
    client.close();
  });

  it('a request that comes byte by byte is one', async () => {
    await listen();
    const client = await member();
    const before = client.bytes().length;
    for (const byte of encodeFrame(['1', 'set', 'slow', 'value'])) {
      client.socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    while (client.bytes().length === before) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(client.bytes().subarray(before).includes('ok')).toBe(true);
  });

  it('one that leaves while it waits is forgotten', async () => {
    await listen();
    const client = await member();
    client.socket.write(encodeFrame(['1', 'wait', '60000', 'never']));
    client.socket.destroy();
    await client.closed;
    await stillServes();
  });
});

it('a server that is not a store is not taken for one', async () => {
  const impostor = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 400 Bad Request and some more\r\n');
    socket.on('data', () => socket.write('HTTP'));
  });
  await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
  const { port } = impostor.address() as { port: number };
  await listen();
  await expect(StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 200 })).rejects.toThrow(
    /no store/,
  );
  impostor.close();
});

describe('a server that knows how to begin', () => {
  /** What answers a client's token as a store does, and then as `answer` says. */
  async function impostorOf(answer: (socket: Socket) => Promise<void>): Promise<number> {
    await listen();
    const impostor = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write(Buffer.alloc(challengeBytes));
      socket.once('data', () => void answer(socket));
    });
    impostor.unref();
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    return (impostor.address() as AddressInfo).port;
  }

  const welcome = encodeFrame(['welcome']);

  it('may take its time, byte by byte', async () => {
    const port = await impostorOf(async (socket) => {
      for (const byte of welcome) {
        socket.write(Buffer.of(byte));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    });
    const client = await StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 5000 });
    client.close();
  });

  it.each([
    ['too long a message', Buffer.alloc(8, 255), /4294967295 bytes is too long/],
    ['a field beyond its message', Buffer.of(4, 0, 0, 0, 9, 0, 0, 0), /a field is longer than its message/],
  ])('and then sends %s gives those who wait an error', async (_, bytes, reason) => {
    const port = await impostorOf(async (socket) => {
      socket.write(welcome);
      socket.once('data', () => socket.write(bytes));
    });
    const client = await StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 5000 });
    const call = client.get('key');
    await expect(call).rejects.toThrow(reason);
    await expect(call).rejects.toThrow(StoreError);
    await expect(client.get('key')).rejects.toThrow(/answers what is no answer/);
  });
});
