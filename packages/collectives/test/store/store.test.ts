import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { StoreClient } from '../../src/store/store-client.ts';
import { StoreServer } from '../../src/store/store-server.ts';

const textOf = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes!);

let server: StoreServer;
let clients: StoreClient[];
const token = 'a secret';

async function join(): Promise<StoreClient> {
  const client = await StoreClient.connect({ host: '127.0.0.1', port: server.port, token, timeoutMs: 5000 });
  clients.push(client);
  return client;
}

beforeEach(async () => {
  clients = [];
  server = await StoreServer.listen({ token });
});

afterEach(() => {
  for (const client of clients) client.close();
  server.close();
});

describe('keys and values', () => {
  it('what one client sets another gets, bytes and text, empty ones too', async () => {
    const [a, b] = [await join(), await join()];
    await a.set('bytes', Uint8Array.of(0, 255, 1));
    await a.set('text', 'grün');
    await a.set('', '');
    expect([...(await b.get('bytes'))]).toEqual([0, 255, 1]);
    expect(textOf(await b.get('text'))).toBe('grün');
    expect(await b.get('')).toHaveLength(0);
  });

  it('sets a key once a client has gone, unless it has a value by then', async () => {
    const [a, b] = [await join(), await join()];
    await a.setOnceGone('left', 'by a');
    await a.setOnceGone('kept', 'by a');
    await b.set('kept', 'by b');
    await expect(b.get('left', { timeoutMs: 50 })).rejects.toThrow(/"left"/);
    const waiting = b.get('left');
    a.close();
    expect(textOf(await waiting)).toBe('by a');
    expect(textOf(await b.get('kept'))).toBe('by b');
    for (let i = 0; i < 64; i++) await b.setOnceGone(`of b ${i}`, '');
    await expect(b.setOnceGone('one more', '')).rejects.toThrow('it keeps 64 such keys of a client');
  });

  it('a large value comes whole', async () => {
    const [a, b] = [await join(), await join()];
    const value = Buffer.alloc(3_000_000, 7);
    await a.set('large', value);
    expect(value.equals(await b.get('large'))).toBe(true);
  });

  it('get waits until the key is set', async () => {
    const [a, b] = [await join(), await join()];
    let isThere = false;
    const got = b.get('later').then((value) => {
      isThere = true;
      return textOf(value);
    });
    await a.set('other', 'x');
    expect(isThere).toBe(false);
    await a.set('later', 'now');
    expect(await got).toBe('now');
  });

  it('get gives a value that is deleted right after it', async () => {
    const client = await join();
    const later = client.get('k');
    const first = [client.set('k', 'value'), client.deletePrefix('k')];
    expect(textOf(await later)).toBe('value');
    const second = [client.set('k', 'another'), client.get('k'), client.deletePrefix('k')] as const;
    expect(textOf(await second[1])).toBe('another');
    await Promise.all([...first, ...second]);
  });

  it('get and wait name the keys that did not come, and only those', async () => {
    const [a, b] = [await join(), await join()];
    await a.set('rank/0', 'here');
    const error = await b.wait(['rank/0', 'rank/1', 'rank/2'], { timeoutMs: 50 }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      missingKeys: ['rank/1', 'rank/2'],
      message: 'wait: nobody has set "rank/1", "rank/2" within 50 ms.',
    });
    await expect(b.get('nothing', { timeoutMs: 20 })).rejects.toThrow(
      'get: nobody has set "nothing" within 20 ms.',
    );
    // Neither has ended the connection.
    await a.set('rank/1', 'late');
    await b.wait(['rank/0', 'rank/1']);
    await b.wait([]);
  });

  it('add counts from 0, for all clients at once', async () => {
    const members = await Promise.all([join(), join(), join()]);
    const sums = await Promise.all(members.flatMap((client) => [client.add('n', 2), client.add('n', -1)]));
    expect(new Set(sums).size).toBeGreaterThan(1);
    expect(await members[0]!.add('n', 0)).toBe(3);
    expect(textOf(await members[1]!.get('n'))).toBe('3');
  });

  it('add refuses what is not a whole number, and goes on', async () => {
    const client = await join();
    await client.set('word', 'x');
    await expect(client.add('word', 1)).rejects.toThrow('"word" holds no whole number');
    await client.set('full', String(Number.MAX_SAFE_INTEGER));
    await expect(client.add('full', 1)).rejects.toThrow(StoreError);
    expect(textOf(await client.get('full'))).toBe(String(Number.MAX_SAFE_INTEGER));
  });

  it('an add wakes those who wait for the key', async () => {
    const [a, b] = [await join(), await join()];
    const waiting = b.get('count');
    await a.add('count', 5);
    expect(textOf(await waiting)).toBe('5');
  });

  it('one of many wins a compare-and-set, and the others see who', async () => {
    const members = await Promise.all([join(), join(), join()]);
    const held = await Promise.all(members.map((client, i) => client.compareAndSet('leader', null, `m${i}`)));
    expect(new Set(held.map(textOf)).size).toBe(1);
    const [leader] = held.map(textOf);
    expect(textOf(await members[0]!.compareAndSet('leader', 'nobody', 'x'))).toBe(leader);
    expect(textOf(await members[0]!.compareAndSet('leader', leader!, 'x'))).toBe('x');
    expect(await members[0]!.compareAndSet('absent', 'something', 'x')).toBe(null);
    // An empty value is a value.
    expect(await members[0]!.compareAndSet('empty', null, '')).toHaveLength(0);
    expect(await members[0]!.compareAndSet('empty', null, 'x')).toHaveLength(0);
  });

  it('deletePrefix deletes what begins so', async () => {
    const client = await join();
    for (const key of ['g/1', 'g/2', 'h/1']) await client.set(key, key);
    expect(await client.deletePrefix('g/')).toBe(2);
    await expect(client.get('g/1', { timeoutMs: 20 })).rejects.toThrow('"g/1"');
    expect(textOf(await client.get('h/1'))).toBe('h/1');
  });
});

it.each([2 ** 31 - 1, 1e12])('a time of %i ms is long, not short', async (timeoutMs) => {
  const place = { host: '127.0.0.1', port: server.port, token };
  const client = await StoreClient.connect({ ...place, timeoutMs });
  clients.push(client);
  const waiting = client.get('later', { timeoutMs });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await (await join()).set('later', 'now');
  expect(textOf(await waiting)).toBe('now');
  const patient = await StoreServer.listen({ token, helloTimeoutMs: 1e12 });
  const { port } = patient;
  const slow = connect({ host: '127.0.0.1', port });
  await once(slow, 'data');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(slow.readyState).toBe('open');
  slow.destroy();
  patient.close();
});

describe('ends', () => {
  it('waiters get an error when the server goes', async () => {
    const client = await join();
    const waiting = client.get('never').catch((error: unknown) => error);
    await client.set('x', 'y');
    server.close();
    expect(await waiting).toBeInstanceOf(StoreError);
    expect(String(await waiting)).toContain('has closed the connection');
    await expect(client.set('x', 'y')).rejects.toThrow('set: the store at 127.0.0.1');
  });

  it('a closed client says so', async () => {
    const client = await join();
    const waiting = client.get('never').catch((error: unknown) => error);
    client.close();
    expect(await waiting).toBeInstanceOf(StoreError);
    await expect(client.get('x')).rejects.toThrow('was closed here');
  });

  it('what waits longer than asked for names the place that does not answer', async () => {
    await expect(StoreClient.connect({ host: '127.0.0.1', port: 1, token, timeoutMs: 120 })).rejects.toThrow(
      /no store answers at 127\.0\.0\.1:1 within 120 ms/,
    );
  });

  it('a client waits for a server that starts later', async () => {
    const { port } = server;
    server.close();
    const connecting = StoreClient.connect({ host: '127.0.0.1', port, token, timeoutMs: 5000 });
    await new Promise((resolve) => setTimeout(resolve, 150));
    server = await StoreServer.listen({ token, port });
    const client = await connecting;
    clients.push(client);
    await client.set('x', 'y');
  });

  it('a port that is taken is named', async () => {
    await expect(StoreServer.listen({ token, port: server.port })).rejects.toThrow(
      `127.0.0.1:${server.port}`,
    );
  });
});
