import { expect, it } from 'vitest';
import { closePeerMemory, exportMemory, openPeerMemory } from '../../src/memory/peer-memory.ts';
import { hostCompilerVersion, openEmulatedGpu } from '../../src/testing.ts';

it.skipIf(hostCompilerVersion() === null)(
  'memory of another GPU is read and written where it was exported, until it is closed',
  () => {
    const [one, other] = [openEmulatedGpu(), openEmulatedGpu()];
    const theirs = other.upload(Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7));
    const { handle, byteOffset } = exportMemory(other.parts, theirs.address + 16);
    other.synchronize();
    const start = openPeerMemory(one.parts, handle);
    const own = one.upload(new Float32Array(4));
    one.stream.copy(own.address, start + byteOffset, 16);
    expect([...own.read(new Float32Array(4))]).toEqual([4, 5, 6, 7]);
    // In the order of the stream, as between a GPU's own memory.
    one.stream.copy(start + byteOffset, own.address, 8);
    one.stream.fill(own.address, 0, 16);
    one.synchronize();
    expect([...theirs.read(new Float32Array(8))]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    closePeerMemory(one.parts, start);
    expect(() => closePeerMemory(one.parts, start)).toThrow(/cuIpcCloseMemHandle failed/);
    expect(() => exportMemory(one.parts, 4096)).toThrow(/cuMemGetAddressRange failed/);
    theirs.free();
  },
);
