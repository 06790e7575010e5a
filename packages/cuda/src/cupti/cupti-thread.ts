// The program of the thread that gives CUPTI its buffers, and takes the full ones; see cupti-buffers.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { ffi } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import { libraries, loadLibrary } from '../driver/library-search.ts';
import { type BufferThreadStart, threadStates } from './cupti-buffers.ts';

const bufferBytes = 32 * 2 ** 20;

const buffers = new Map<number, HostMemory>();
const free: HostMemory[] = [];
let filled: { readonly memory: HostMemory; readonly validBytes: number }[] = [];

function makeBuffer(): HostMemory {
  const memory = new HostMemory(bufferBytes);
  buffers.set(memory.address, memory);
  return memory;
}

/** CUPTI takes them zeroed, so that it need not do that on the thread whose work is timed. */
function takeFilled(): Uint8Array<ArrayBuffer>[] {
  return filled.splice(0).map(({ memory, validBytes }) => {
    const records = memory.bytes.slice(0, validBytes) as Uint8Array<ArrayBuffer>;
    memory.bytes.fill(0, 0, validBytes);
    free.push(memory);
    return records;
  });
}

function register(): number {
  const koffi = ffi();
  const request = koffi.proto(
    'void RooflineBufferRequested(uintptr_t buffer, uintptr_t byteLength, uintptr_t maxRecords)',
  );
  const complete = koffi.proto(
    'void RooflineBufferCompleted(uintptr_t context, uint stream, uintptr_t buffer, size_t byteLength, size_t validBytes)',
  );
  const requested = koffi.register((buffer: number, byteLength: number, maxRecords: number) => {
    const memory = free.pop() ?? makeBuffer();
    koffi.encode(buffer, 'uint64', memory.address);
    koffi.encode(byteLength, 'uint64', memory.bytes.length);
    koffi.encode(maxRecords, 'uint64', 0);
  }, koffi.pointer(request));
  const completed = koffi.register(
    (_context: number, _stream: number, buffer: number, _byteLength: number, validBytes: number) => {
      filled.push({ memory: buffers.get(Number(buffer))!, validBytes: Number(validBytes) });
    },
    koffi.pointer(complete),
  );
  const { handle } = loadLibrary(libraries.cupti);
  return handle.func('int cuptiActivityRegisterCallbacks(void *request, void *complete)')(
    requested,
    completed,
  ) as number;
}

parentPort!.on('message', () => {
  const records = takeFilled();
  parentPort!.postMessage(
    records,
    records.map(({ buffer }) => buffer),
  );
});

const state = new Int32Array((workerData as BufferThreadStart).state);
const result = register();
Atomics.store(state, 0, result === 0 ? threadStates.ready : threadStates.refused + result);
Atomics.notify(state, 0);
