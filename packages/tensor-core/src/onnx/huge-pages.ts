import { ffi } from '@roofline/cuda/host';

type Advise = (address: number, byteLength: number, advice: number) => number;

const hugePageBytes = 2 * 2 ** 20;
/** A multiple of every usual page size. */
const pageBytes = 65_536;
const MADV_HUGEPAGE = 14;

let madvise: Advise | null = null;

/**
 * Asks Linux to lay large memory in huge pages, where it leaves that to programs ("madvise"): a tensor of megabytes is
 * then found by few entries of the processor's address cache. A kernel without them declines, and nothing is lost.
 */
export function adviseHugePages(address: number, byteLength: number): void {
  if (process.platform !== 'linux' || byteLength < 2 * hugePageBytes) return;
  // The process's own symbols: the name of libc's file differs.
  madvise ??= ffi().load(null).func('int madvise(uintptr_t address, size_t length, int advice)') as Advise;
  const start = Math.ceil(address / pageBytes) * pageBytes;
  const end = Math.floor((address + byteLength) / pageBytes) * pageBytes;
  madvise(start, end - start, MADV_HUGEPAGE);
}
