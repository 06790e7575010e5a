import { expect, test } from 'vitest';
import { existsSync, readFileSync } from 'node:fs';
import { BufferPool } from '../../src/onnx/buffer-pool.ts';

const mebibyte = 2 ** 20;
const canHaveThem = existsSync('/sys/kernel/mm/transparent_hugepage');

/** The flags of the mapping that holds an address, as Linux names them: `hg` is the advice to use huge pages. */
function flagsAt(address: number): string[] {
  let isInside = false;
  for (const line of readFileSync('/proc/self/smaps', 'utf8').split('\n')) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line);
    if (range) isInside = parseInt(range[1]!, 16) <= address && address < parseInt(range[2]!, 16);
    else if (isInside && line.startsWith('VmFlags:')) return line.slice(8).trim().split(' ');
  }
  throw new Error(`no mapping holds ${address.toString(16)}`);
}

test.runIf(canHaveThem)('large memory is advised to use huge pages', () => {
  const pool = new BufferPool({ totalBytes: () => 2 ** 33, availableBytes: () => 2 ** 33 });
  // More than an allocator serves from memory that it has: a mapping of its own.
  const buffer = pool.allocate(100 * mebibyte);
  expect(flagsAt(buffer.address + 50 * mebibyte)).toContain('hg');
  expect(flagsAt(buffer.address + 99 * mebibyte)).toContain('hg');
  pool.free(buffer);
  pool.emptyCache();
});
