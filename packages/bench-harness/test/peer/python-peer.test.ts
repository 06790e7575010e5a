import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { StepPeer } from '../../src/peer/step-peer.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

afterEach(() => void vi.useRealTimers());

/** A peer whose Python is a program of the shell. */
function peerOf(program: string): StepPeer<'torch'> {
  const python = join(temporaryFolder(), 'python');
  writeFileSync(python, `#!/bin/sh\n${program}\n`, { mode: 0o755 });
  return new StepPeer('torch', python, 1);
}

it.each([
  ['exit 3', 'The PyTorch process ended unexpectedly: it said nothing'],
  [
    'echo "Traceback:" >&2; echo "ImportError: libcudart.so.12" >&2; exit 1',
    'The PyTorch process ended unexpectedly: ImportError: libcudart.so.12\nTraceback:\nImportError: libcudart.so.12',
  ],
])('says in the first line why it ended: %s', async (program, message) => {
  const peer = peerOf(`read request; ${program}`);
  await expect(peer.run(1)).rejects.toThrow(expect.objectContaining({ name: 'PeerError', message }));
  await peer.close();
});

it('kills a Python that does not end, so that what was measured next to it is not lost', async () => {
  const peer = peerOf('read request; echo no JSON; exec sleep 600');
  await expect(peer.run(1)).rejects.toThrow('is no JSON');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const closed = peer.close();
  vi.advanceTimersByTime(10_000);
  vi.useRealTimers();
  await closed;
});
