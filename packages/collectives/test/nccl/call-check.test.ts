import { describe, expect, it, onTestFinished } from 'vitest';
import { StoreClient, StoreServer } from '../../src/index.ts';
import { CallCheck } from '../../src/nccl/watchdog/call-check.ts';

/** What three ranks compare by; the world's are 4, 7 and 9. */
async function checks(): Promise<{ client: StoreClient; ranks: CallCheck[] }> {
  const server = await StoreServer.listen({ token: 't' });
  const client = await StoreClient.connect({ host: '127.0.0.1', port: server.port, token: 't' });
  onTestFinished(() => {
    client.close();
    server.close();
  });
  return { client, ranks: [0, 1, 2].map((rank) => new CallCheck(client, 'group', rank, [4, 7, 9])) };
}

describe('a context', () => {
  it('is compared with that of the rank that came first, in the order of calls', async () => {
    const { ranks } = await checks();
    const [first, second, third] = ranks as [CallCheck, CallCheck, CallCheck];
    expect(await second.checkContext('step 1')).toBeNull();
    expect(await first.checkContext('step 1')).toBeNull();
    expect(await first.checkContext('step 2')).toBeNull();
    // A rank that comes late is compared with what the others said then.
    expect(await third.checkContext('step 1')).toBeNull();
    expect(await third.checkContext('step 2')).toBeNull();
    expect(await second.checkContext('step 3')).toBe(
      'the ranks do not call the same (rank 4: step 2; rank 7: step 3)',
    );
  });

  it('leaves no more in the store than those of the last blocks', async () => {
    const { client, ranks } = await checks();
    for (let number = 0; number <= 2048; number++) await ranks[0]!.checkContext(`step ${number}`);
    expect(await client.deletePrefix('group/contexts/0/')).toBe(0);
    expect(await client.deletePrefix('group/contexts/1/')).toBe(1024);
    expect(await client.deletePrefix('group/contexts/2/')).toBe(1);
  }, 60_000);
});
