import koffi from 'koffi';

let memcpy: ReturnType<ReturnType<typeof koffi.load>['func']> | null = null;

/** The bytes at an address. */
export function readAt(address: number, byteLength: number): DataView {
  return new DataView(koffi.view(address, byteLength));
}

/** Writes where a caller wants its result; gives the CUresult of a call that succeeds, as those below do. */
export function give(out: number, value: Uint8Array | Int32Array | BigUint64Array | Float32Array): number {
  memcpy ??= koffi.load('libc.so.6').func('uintptr_t memcpy(uintptr_t to, const void *from, size_t bytes)');
  memcpy(out, new Uint8Array(value.buffer, value.byteOffset, value.byteLength), value.byteLength);
  return 0;
}

export function giveInt(out: number, value: number): number {
  return give(out, new Int32Array([value]));
}

/** Any 64-bit word: a handle, an address, a size. */
export function giveHandle(out: number, value: number): number {
  return give(out, new BigUint64Array([BigInt(value)]));
}
