import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An interpreter with PyTorch; undefined if there is none. */
export const torchPython = ['/usr/bin/python3', 'python3'].find(
  (command) => spawnSync(command, ['-c', 'import torch.cuda._memory_viz']).status === 0,
);

/** Reads a snapshot as memory_viz does: every segment full of blocks, every free of what is there. */
const reader = `
import json, pickle, sys
import torch.cuda._memory_viz as viz
data = pickle.load(open(sys.argv[1], 'rb'))
if hasattr(viz, 'trace_plot'):
    assert 'html' in viz.trace_plot(data) and 'html' in viz.segment_plot(data)
    viz.segsum(data); viz.trace(data)
else:
    viz.stats(data['segments'])
    viz.memory(data['segments'], format_flamegraph=lambda text: text)
live = {}
for entry in data['device_traces'][-1]:
    assert all(type(f['line']) is int and f['name'] and f['filename'] for f in entry['frames'])
    if entry['action'] == 'alloc': live[entry['addr']] = entry['size']
    if entry['action'] == 'free_completed': live.pop(entry['addr'], None)
for segment in data['segments']:
    assert sum(b['size'] for b in segment['blocks']) == segment['total_size']
    active = sum(b['size'] for b in segment['blocks'] if b['state'] == 'active_allocated')
    assert active == segment['allocated_size'] == segment['active_size'] >= segment['requested_size']
blocks = {b['address']: b for s in data['segments'] for b in s['blocks'] if b['state'] == 'active_allocated'}
assert all(blocks[address]['requested_size'] == size for address, size in live.items())
print(json.dumps({'torch': viz.__file__ and __import__('torch').__version__, 'drawn': hasattr(viz, 'trace_plot'), 'live': list(live.values()), 'actions': [e['action'] for e in data['device_traces'][-1]],
                  'frames': [f['name'] for a in live for f in blocks[a]['frames']]}))
`;

export interface SnapshotAsRead {
  readonly torch: string;
  /** Whether this PyTorch can draw; old ones only summarize. */
  readonly drawn: boolean;
  /** Sizes of allocations made while recording and still held. */
  readonly live: readonly number[];
  readonly actions: readonly string[];
  /** Names of the frames of allocations still held. */
  readonly frames: readonly string[];
}

/** Loads, checks and draws a snapshot with PyTorch. Throws with Python's output. */
export function readSnapshot(bytes: Uint8Array): SnapshotAsRead {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-snapshot-'));
  const file = join(folder, 'snapshot.pickle');
  writeFileSync(file, bytes);
  const { stdout, stderr, status } = spawnSync(torchPython!, ['-c', reader, file], { maxBuffer: 2 ** 28 });
  rmSync(folder, { recursive: true });
  if (status !== 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString()) as SnapshotAsRead;
}
