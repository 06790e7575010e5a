import { ffi } from '@roofline/cuda/host';

type Advise = (address: number, byteLength: number, advice: number) => number;

const hugePageBytes = 2 * 2 ** 20;
/** A multiple of every usual page size. */
const pageBytes = 65_536;
const MADV_HUGEPAGE = 14;

let madvise: Advise | null = null;

/**
 * Asks Linux to use huge pages for large memory, where it leaves that to programs ("madvise"): a tensor of megabytes then
 * needs few entries of the processor's TLB. A kernel without huge pages declines, which does no harm.
 */
export function adviseHugePages(address: number, byteLength: number): void {
  if (process.platform !== 'linux' || byteLength < 2 * hugePageBytes) return;
  // From the process's own symbols, as the name of libc's file varies.
  madvise ??= ffi().load(null).func('int madvise(uintptr_t address, size_t length, int advice)') as Advise;
  const start = Math.ceil(address / pageBytes) * pageBytes;
  const end = Math.floor((address + byteLength) / pageBytes) * pageBytes;
  madvise(start, end - start, MADV_HUGEPAGE);
}
