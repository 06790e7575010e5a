import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { writeSafetensors } from '../../src/checkpoint/safetensors.ts';

const calls = vi.hoisted(() => [] as string[]);

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const told = <F extends (...values: never[]) => unknown>(name: string, call: F) =>
    ((...values: Parameters<F>) => {
      calls.push(name);
      return call(...values);
    }) as F;
  return {
    ...fs,
    writeSync: told('write', fs.writeSync),
    fsyncSync: told('sync', fs.fsyncSync),
    renameSync: told('rename', fs.renameSync),
  };
});

it('is on the disk before it takes the place of the file before', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-durable-'));
  try {
    const path = join(folder, 'model.safetensors');
    const x = { name: 'x', dtype: 'float32', shape: [2], read: () => new Uint8Array(8) } as const;
    writeSafetensors(path, [x]);
    expect(calls.slice(calls.lastIndexOf('write'))).toEqual(['write', 'sync', 'rename']);
    expect(readFileSync(path).length).toBeGreaterThan(8);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
