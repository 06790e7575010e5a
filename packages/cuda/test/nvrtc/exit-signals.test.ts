// Is alone in a process: its environment names a stand-in for NVRTC's library.
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { nvrtcVersion } from '../../src/testing/runtime-compiler.ts';
import { standInForNvrtc } from './stand-in-for-nvrtc.ts';

const folder = new URL('../../src/nvrtc/', import.meta.url).href;

/** How a program ends that compiles in a way and then gets a signal; it is killed where it does not end. */
function endOf(compile: string, signal: NodeJS.Signals, before = '') {
  const program = `
    import { CompileBatch } from '${folder}compile-batch.ts';
    import { loadNvrtc } from '${folder}nvrtc.ts';
    const requests = ['a', 'b', 'c'].map((name) => ({
      ...{ name, source: \`extern "C" __global__ void \${name}() {}\`, headers: new Map() },
      ...{ architecture: 'sm_90a', options: [] },
    }));
    setTimeout(() => {}, 60_000);
    ${before}
    ${compile};
    process.kill(process.pid, '${signal}');`;
  const { signal: killedBy, stdout } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    { encoding: 'utf8', timeout: 20_000, killSignal: 'SIGKILL' },
  );
  return { killedBy, stdout };
}

const ways = {
  here: 'loadNvrtc().compile(requests[0])',
  'in threads': 'await new CompileBatch(requests, 3).ended()',
  'here and in threads':
    'const batch = new CompileBatch(requests, 3); loadNvrtc().compile(requests[0]); await batch.ended()',
};

function itEnds() {
  it.each(Object.entries(ways))('end a process that has compiled %s', (_, compile) => {
    expect(endOf(compile, 'SIGINT')).toEqual({ killedBy: 'SIGINT', stdout: '' });
    expect(endOf(compile, 'SIGTERM')).toEqual({ killedBy: 'SIGTERM', stdout: '' });
  });

  it('reach who listens for them, as often as they come', () => {
    const listen = `
      let count = 0;
      process.on('SIGINT', () => {
        console.log(++count);
        process.kill(process.pid, count < 3 ? 'SIGINT' : 'SIGTERM');
      });`;
    expect(endOf(ways.here, 'SIGINT', listen)).toEqual({ killedBy: 'SIGTERM', stdout: '1\n2\n3\n' });
  });
}

describe.skipIf(nvrtcVersion() === null)('signals behind a compilation by NVRTC (needs libnvrtc)', itEnds);

describe.skipIf(!hostCompilerVersion())('signals behind a compilation by a stand-in (need gcc)', () => {
  let end: () => void;
  beforeAll(() => {
    end = standInForNvrtc();
  });
  afterAll(() => end());

  itEnds();
});
