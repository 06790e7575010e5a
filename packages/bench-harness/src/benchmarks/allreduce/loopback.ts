import { HostMemory, ffi } from '@roofline/cuda/host';

const copiedBytes = 2 ** 26;
const rounds = 12;
const family = 2; // AF_INET
const stream = 1; // SOCK_STREAM
const waitAll = 0x100; // MSG_WAITALL
const addressBytes = 16;

type Call = ((...values: readonly (number | bigint)[]) => number) & {
  async(...values: readonly unknown[]): void;
};

/**
 * Bytes a second of the machine's loopback: a plain copy from one TCP socket to another, both ends busy at once; the best
 * of some. Throws an Error where there are no such sockets.
 */
export async function measureLoopback(): Promise<number> {
  const libc = ffi().load('libc.so.6');
  const call = (prototype: string) => libc.func(prototype) as unknown as Call;
  const open = call('int socket(int family, int type, int protocol)');
  const send = call('int64_t send(int socket, uintptr_t from, size_t bytes, int flags)');
  const receive = call('int64_t recv(int socket, uintptr_t to, size_t bytes, int flags)');
  const close = call('int close(int socket)');
  const address = new HostMemory(addressBytes);
  const length = new HostMemory(4);
  // sockaddr_in of 127.0.0.1 and any port.
  address.bytes.set([family, 0, 0, 0, 127, 0, 0, 1]);
  length.words[0] = addressBytes;
  const sockets = [open(family, stream, 0), open(family, stream, 0)];
  const [listening, sending] = sockets as [number, number];
  const pointer = 'int socket, uintptr_t address';
  const steps = [
    call(`int bind(${pointer}, uint length)`)(listening, address.address, addressBytes),
    call('int listen(int socket, int backlog)')(listening, 1),
    call(`int getsockname(${pointer}, uintptr_t length)`)(listening, address.address, length.address),
    call(`int connect(${pointer}, uint length)`)(sending, address.address, addressBytes),
  ];
  const receiving = call(`int accept(${pointer}, uintptr_t length)`)(listening, 0, 0);
  sockets.push(receiving);
  try {
    if (steps.some((result) => result !== 0) || receiving < 0)
      throw new Error("loopback's bandwidth cannot be measured: no sockets at 127.0.0.1.");
    const [from, to] = [new HostMemory(copiedBytes), new HostMemory(copiedBytes)];
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const startMs = performance.now();
      await Promise.all([
        finished(send, sending, from.address, copiedBytes, 0),
        finished(receive, receiving, to.address, copiedBytes, waitAll),
      ]);
      times.push(performance.now() - startMs);
    }
    return (copiedBytes * 1000) / Math.min(...times);
  } finally {
    for (const socket of sockets) close(socket);
  }
}

/** Runs a call on a thread of its own. */
function finished(call: Call, ...values: readonly number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    call.async(...values, (error: Error | null, bytes: number) => {
      if (error || Number(bytes) !== copiedBytes)
        reject(error ?? new Error('loopback: a copy was cut short.'));
      else resolve();
    });
  });
}
