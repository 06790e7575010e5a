import koffi from 'koffi';
import { DeviceError } from '../base/errors.ts';
import { peerHandleBytes } from '../driver/driver.ts';

// Of Linux's <sys/mman.h> and <fcntl.h>.
const [readAndWrite, readWriteFile] = [3, 2];
const shared = 1;
const [privately, anonymous, withoutReserve] = [0x2, 0x20, 0x4000];
const fixed = 0x10;
const closeOnExec = 1;
/** Of the driver's allocations. */
const alignment = 2 ** 21;
/** No address of a process is larger: -1 is how mmap fails. */
const largestAddress = 2 ** 48;

/** Files of memory, which other processes can map: an emulated GPU's, whose ranks are processes. */
export class EmulatedMemory {
  readonly #libc = koffi.load('libc.so.6');
  readonly #create = this.#libc.func('int memfd_create(const char *name, uint flags)');
  readonly #resize = this.#libc.func('int ftruncate(int file, int64_t bytes)');
  readonly #open = this.#libc.func('int open(const char *path, int flags)');
  readonly #closeFile = this.#libc.func('int close(int file)');
  readonly #map = this.#libc.func(
    'uintptr_t mmap(uintptr_t address, size_t bytes, int protection, int flags, int file, int64_t offset)',
  );
  readonly #unmap = this.#libc.func('int munmap(uintptr_t address, size_t bytes)');
  /** By address: this process's own, and those of others. */
  readonly #own = new Map<
    number,
    { readonly file: number; readonly bytes: number; readonly serial: number }
  >();
  #made = 0;
  readonly #opened = new Map<number, number>();

  allocate(bytes: number): number {
    const file = this.#create('roofline-emulated-gpu', closeOnExec) as number;
    this.#resize(file, bytes);
    const address = this.#place(file, bytes);
    if (address === null) throw new DeviceError(`The emulated GPU found no ${bytes} bytes of memory.`);
    this.#own.set(address, { file, bytes, serial: ++this.#made });
    return address;
  }

  free(address: number): void {
    const { file, bytes } = this.#own.get(address)!;
    this.#own.delete(address);
    this.#unmap(address, bytes);
    this.#closeFile(file);
  }

  /** Where other processes find an allocation. */
  handleOf(address: number): Uint8Array {
    const { file, bytes, serial } = this.#own.get(address)!;
    // Files that are closed give others their numbers.
    const text = `/proc/${process.pid}/fd/${file} ${bytes} ${serial}`;
    return new Uint8Array(Buffer.from(text.padEnd(peerHandleBytes)));
  }

  /** The address of an allocation of another process; null where there is none. */
  open(handle: Uint8Array): number | null {
    const [path, bytes] = Buffer.from(handle).toString().trim().split(' ') as [string, string];
    const file = this.#open(path, readWriteFile) as number;
    if (file < 0) return null;
    const address = this.#place(file, Number(bytes));
    this.#closeFile(file);
    if (address !== null) this.#opened.set(address, Number(bytes));
    return address;
  }

  /** Whether an address lies in what was opened. */
  hasOpened(address: number): boolean {
    for (const [start, bytes] of this.#opened) if (start <= address && address < start + bytes) return true;
    return false;
  }

  /** Whether there was one. */
  close(address: number): boolean {
    const bytes = this.#opened.get(address);
    if (bytes === undefined) return false;
    this.#opened.delete(address);
    this.#unmap(address, bytes);
    return true;
  }

  /** Maps a file at an aligned address, inside a larger range that is given back around it. */
  #place(file: number, bytes: number): number | null {
    const room = bytes + alignment;
    const start = this.#map(0, room, 0, privately | anonymous | withoutReserve, -1, 0) as number;
    if (start > largestAddress) return null;
    const address = Math.ceil(start / alignment) * alignment;
    if (address > start) this.#unmap(start, address - start);
    const mapped = this.#map(address, bytes, readAndWrite, shared | fixed, file, 0) as number;
    const end = Math.ceil((address + bytes) / 4096) * 4096;
    if (start + room > end) this.#unmap(end, start + room - end);
    return mapped === address ? address : null;
  }
}
