import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { startScript, runRanks, withRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

const variables = hasCompiler ? buildStubs() : {};
const allRight = { code: 0, stdout: 'all right\n', stderr: '' };
const run = async (script: string, size: number, args: readonly string[] = []) =>
  (await runRanks(script, size, args, variables)).map(({ code, stdout, stderr }) => ({
    code,
    stdout,
    stderr,
  }));

// Before the others: it compiles the emulated GPU's kernels, which all of them would compile at once.
it.skipIf(!hasCompiler)(
  'every collective in every dtype, one rank with more memory for Node.js',
  async () => {
    const place = { MASTER_ADDR: '127.0.0.1', MASTER_PORT: String(await freePort()) };
    const environment = { RANK: '0', WORLD_SIZE: '1', ...place, ...variables };
    // A flag that threads do not take.
    const flags = ['--max-old-space-size=4096'];
    const { code, stdout, stderr } = await startScript('nccl-collectives', [], environment, [], flags).result;
    expect({ code, stdout, stderr }).toEqual(allRight);
  },
);

// Most of these wait for time limits.
describe.skipIf(!hasCompiler).concurrent(`NCCL, by a stand-in that moves data${compilerNote}`, () => {
  it.each([2, 3])('every collective in every dtype, %i ranks', async (size) => {
    for (const result of await run('nccl-collectives', size)) expect(result).toEqual(allRight);
  });

  it('data parallelism on emulated GPUs, in all modes: the ranks are one, to rounding', async () => {
    const scenarios = ['emulated', 'plain', 'autocast', 'sharded AdamW'];
    for (const result of await run('data-parallel', 2, scenarios)) expect(result).toEqual(allRight);
  });

  it('NCCL that cannot split: calls that are asked for their results', async () => {
    const old = { ...variables, STUB_NCCL_VERSION: '21703' };
    for (const result of await runRanks('nccl-collectives', 2, [], old))
      expect(result).toMatchObject(allRight);
  });

  it.each([
    ['late'],
    ['lateLater'],
    ['mismatch'],
    ['asynchronous'],
    ['refused'],
    ['unconnected'],
    ['absent'],
    ['memory', 'coalesce', 'disposed'],
    ['compiled, late'],
    ['compiled, mismatch'],
    ['compiled, asynchronous'],
    ['compiled, refused'],
    ['compiled, disposed'],
  ])('fault: %s', async (...faults) => {
    for (const result of await run('nccl-faults', 2, faults)) expect(result).toEqual(allRight);
  });

  it('a rank that is killed in a compiled step: the other is freed, and goes on alone', async () => {
    const [first] = await run('nccl-faults', 2, ['compiled, killed']);
    expect(first).toEqual(allRight);
  });

  it('a failure of a replay that nothing asks about is reported at the end, with an exit code', async () => {
    const [first] = await run('nccl-faults', 2, ['compiled, unheard']);
    expect(first!.code).toBe(1);
    expect(first!.stderr).toContain('CollectiveError: step: failed on rank 0: rank 1 did not come in time');
  });

  it('a rank that is killed: the other is blocked by its stream, is freed, and goes on alone', async () => {
    const [first] = await run('nccl-faults', 2, ['killed']);
    expect(first).toEqual(allRight);
  });

  it('a failure that nothing asks about is reported at the end, with an exit code', async () => {
    const [first] = await run('nccl-faults', 2, ['unheard']);
    expect(first!.code).toBe(1);
    expect(first!.stderr).toContain(
      'CollectiveError: allReduce: failed on rank 0: rank 1 did not come in time',
    );
  });

  it('process.exit with a call in flight does not wait for it', async () => {
    await withRanks(
      'nccl-faults',
      2,
      async ([first]) => {
        const { code, stdout } = await first!.result;
        expect(code).toBe(7);
        expect(Date.now() - Number(/exits (\d+)/.exec(stdout)![1])).toBeLessThan(30_000);
      },
      ['exits'],
      variables,
    );
  });

  it('an old NCCL is refused', async () => {
    const environment = { RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: '127.0.0.1', MASTER_PORT: '1' };
    const { result } = startScript('nccl-faults', ['absent'], {
      ...environment,
      ...variables,
      STUB_NCCL_VERSION: '21003',
    });
    const { code, stderr } = await result;
    expect(code).not.toBe(0);
    expect(stderr).toContain('is NCCL 2.10.3; NCCL 2.14 or newer is needed');
  });
});

it('without NCCL, initProcessGroup says how to get it', () => {
  const program = `
    import { initProcessGroup } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)};
    await initProcessGroup({ backend: 'nccl', rank: 0, worldSize: 1, masterAddress: 'h', masterPort: 1 }).catch(
      ({ name, message }) => console.log(name, message));`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--conditions=roofline-source',
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program,
    ],
    { encoding: 'utf8', env: { ...process.env, ROOFLINE_CUDA_LIBRARIES: '/nowhere' } },
  );
  expect(stderr).toBe('');
  // A machine that has NCCL has no GPU for it, or a store at no host.
  expect(stdout).toMatch(
    /LibraryNotFoundError libnccl.*pip install nvidia-nccl|DeviceError|LibraryNotFoundError libcuda|StoreError/s,
  );
});
